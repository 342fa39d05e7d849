-- Reads the labels as text first: one that is not JSON cannot be stored while
-- the library is loaded, but the view must not fail if there is one.
CREATE VIEW ttl.tables AS
    SELECT l.objoid::pg_catalog.regclass AS relation,
           (p.policy OPERATOR(pg_catalog.->>) 'default_ttl')::integer AS default_ttl,
           COALESCE(p.policy OPERATOR(pg_catalog.->>) 'ts_column', '_ts')::name AS ts_column,
           CASE WHEN p.policy OPERATOR(pg_catalog.?) 'ttl_column'
                THEN p.policy OPERATOR(pg_catalog.->>) 'ttl_column' ELSE 'ttl' END::name AS ttl_column,
           (p.policy OPERATOR(pg_catalog.->>) 'document_column')::name AS document_column,
           true AS hidden,
           '[]'::jsonb AS rules,
           ttl.problems(l.objoid::pg_catalog.regclass) AS problems
      FROM pg_catalog.pg_seclabel AS l
     CROSS JOIN LATERAL (SELECT CASE WHEN pg_catalog.left(l.label, 1) OPERATOR(pg_catalog.=) '{'
                                     THEN l.label::jsonb ELSE '{}'::jsonb END) AS p (policy)
     WHERE l.provider OPERATOR(pg_catalog.=) 'ttl'
       AND l.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
       AND l.objsubid OPERATOR(pg_catalog.=) 0;

COMMENT ON VIEW ttl.tables IS 'the tables that have a time to live, their settings, and what is wrong with them';
COMMENT ON COLUMN ttl.tables.relation IS 'the table; partitions and inheriting tables follow it';
COMMENT ON COLUMN ttl.tables.default_ttl IS 'seconds after which a row without an override expires; -1 = never; NULL = TTL is off';
COMMENT ON COLUMN ttl.tables.ts_column IS 'the column with the time of the row''s last modification';
COMMENT ON COLUMN ttl.tables.ttl_column IS 'the column with the row''s override in seconds; NULL = the table has none';
COMMENT ON COLUMN ttl.tables.document_column IS 'the jsonb column from whose property "ttl" the override is generated';
COMMENT ON COLUMN ttl.tables.hidden IS 'whether expired rows are hidden at once';
COMMENT ON COLUMN ttl.tables.rules IS 'rules by TTL indexes beside the default; none in this version';
COMMENT ON COLUMN ttl.tables.problems IS 'what keeps the time to live from working as it should; empty if nothing does';
