"""A live source without Spark: what Spark does with it, and a second reader of what it recorded."""
