CREATE TABLE docs (id integer PRIMARY KEY, embedding vector(16));
CREATE INDEX ON docs USING hnsw (embedding vector_l2_ops);
SELECT ttl.enable('docs', '30 days');
