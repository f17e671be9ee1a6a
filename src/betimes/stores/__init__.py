"""The stores: each keeps the contract `betimes.ports.Store`; none knows another."""
