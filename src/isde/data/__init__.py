"""Files and frames in, one `Table` out: an N x d float64 matrix with column names, or one sentence why not."""
