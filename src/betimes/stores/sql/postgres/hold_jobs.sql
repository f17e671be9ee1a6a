-- Wait for all who are writing jobs, and let nobody else write any until the transaction is over.
LOCK TABLE betimes_job IN SHARE ROW EXCLUSIVE MODE;
