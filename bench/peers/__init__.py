"""The same work done by other libraries, one module each, with the settings that suit them best."""
