-- Run once, in the database that the image makes, when a data directory is made.
CREATE EXTENSION IF NOT EXISTS ttl_ext;
