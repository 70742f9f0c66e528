"""Work as values, and what runs it: chunks, executors, stores."""
