-- Read the number that a server got when its data were first made.
SELECT system_identifier FROM pg_control_system();
