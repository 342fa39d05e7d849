-- What is wrong with the rows on disk of a schema's tables: constraints that do
-- not hold, rows in the wrong partition, indexes that do not have the rows of
-- their table. For sessions that see expired rows. It reads the catalogs, so
-- that it does not depend on what the test takes the tables for.
CREATE FUNCTION public.broken_constraints(in_schema text) RETURNS SETOF text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    con record;
    ind record;
    bad text;
    from_table tid[];
    from_index tid[];
BEGIN
    -- Every key that is given has its row.
    FOR con IN
        SELECT c.conname, c.conrelid::regclass AS child, c.confrelid::regclass AS parent,
               string_agg(format('c.%I IS NOT NULL', f.attname), ' AND ') AS given,
               string_agg(format('p.%I = c.%I', t.attname, f.attname), ' AND ') AS matches
          FROM pg_constraint AS c, unnest(c.conkey, c.confkey) AS k (f, t),
               pg_attribute AS f, pg_attribute AS t
         WHERE c.contype = 'f' AND c.conparentid = 0 AND c.connamespace = in_schema::regnamespace
           AND f.attrelid = c.conrelid AND f.attnum = k.f
           AND t.attrelid = c.confrelid AND t.attnum = k.t
         GROUP BY c.oid, c.conname, c.conrelid, c.confrelid
    LOOP
        EXECUTE format('SELECT string_agg(c::text, '' '') FROM %s AS c WHERE %s AND NOT EXISTS (SELECT FROM %s AS p WHERE %s)',
                       con.child, con.given, con.parent, con.matches) INTO bad;
        IF bad IS NOT NULL THEN
            RETURN NEXT format('foreign key %s: no row in %s for %s of %s', con.conname, con.parent, bad, con.child);
        END IF;
    END LOOP;
    -- CHECK constraints, that of the overrides among them.
    FOR con IN
        SELECT c.conname, c.conrelid::regclass AS rel, pg_get_expr(c.conbin, c.conrelid) AS rule
          FROM pg_constraint AS c WHERE c.contype = 'c' AND c.connamespace = in_schema::regnamespace
    LOOP
        EXECUTE format('SELECT string_agg(t::text, '' '') FROM %s AS t WHERE NOT (%s)', con.rel, con.rule) INTO bad;
        IF bad IS NOT NULL THEN
            RETURN NEXT format('check %s does not hold in %s: %s', con.conname, con.rel, bad);
        END IF;
    END LOOP;
    FOR con IN
        SELECT oid::regclass AS rel, pg_get_partition_constraintdef(oid) AS rule FROM pg_class
         WHERE relnamespace = in_schema::regnamespace AND relispartition AND relkind = 'r'
    LOOP
        EXECUTE format('SELECT string_agg(t::text, '' '') FROM ONLY %s AS t WHERE NOT (%s)', con.rel, con.rule) INTO bad;
        IF bad IS NOT NULL THEN
            RETURN NEXT format('rows in the wrong partition %s: %s', con.rel, bad);
        END IF;
    END LOOP;
    -- Every unique key is there once, by the rows themselves.
    FOR ind IN
        SELECT i.indexrelid::regclass AS name, i.indrelid::regclass AS rel, c.relkind,
               coalesce(pg_get_expr(i.indpred, i.indrelid), 'true') AS rule,
               string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ') AS keys,
               string_agg(CASE WHEN i.indnullsnotdistinct THEN 'true'
                          ELSE format('(%s) IS NOT NULL', pg_get_indexdef(i.indexrelid, n, true)) END, ' AND ') AS given
          FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid, generate_series(1, i.indnkeyatts) AS n
         WHERE i.indisunique AND c.relnamespace = in_schema::regnamespace
         GROUP BY i.indexrelid, i.indrelid, c.relkind, i.indpred
    LOOP
        PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
                set_config('enable_bitmapscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
        EXECUTE format('SELECT string_agg(t::text, '' '') FROM (SELECT %s FROM %s WHERE (%s) AND %s GROUP BY %1$s HAVING count(*) > 1) AS t',
                       ind.keys, ind.rel, ind.rule, ind.given) INTO bad;
        IF bad IS NOT NULL THEN
            RETURN NEXT format('more than one row has the key %s in %s', bad, ind.name);
        END IF;
        CONTINUE WHEN ind.relkind = 'p';
        -- And the index has the same rows as the table.
        EXECUTE format('SELECT array_agg(ctid ORDER BY ctid) FROM ONLY %s WHERE %s', ind.rel, ind.rule) INTO from_table;
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true),
                set_config('enable_sort', 'off', true);
        EXECUTE format('SELECT array_agg(ctid ORDER BY ctid) FROM (SELECT ctid FROM ONLY %s WHERE %s ORDER BY %s OFFSET 0) AS t',
                       ind.rel, ind.rule, ind.keys) INTO from_index;
        PERFORM set_config('enable_sort', 'on', true), set_config('enable_seqscan', 'on', true),
                set_config('enable_bitmapscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
        IF from_table IS DISTINCT FROM from_index THEN
            RETURN NEXT format('%s has rows %s, its table %s has %s', ind.name, from_index, ind.rel, from_table);
        END IF;
    END LOOP;
    -- Exclusion constraints: no row against another.
    FOR con IN
        SELECT c.conname, c.conrelid::regclass AS rel,
               string_agg(format('%s AS e%s', pg_get_indexdef(c.conindid, n::integer, true), n), ', ') AS keys,
               string_agg(format('a.e%s OPERATOR(%I.%s) b.e%1$s', n, s.nspname, o.oprname), ' AND ') AS conflict
          FROM pg_constraint AS c, unnest(c.conexclop) WITH ORDINALITY AS x (op, n), pg_operator AS o, pg_namespace AS s
         WHERE c.contype = 'x' AND c.connamespace = in_schema::regnamespace AND o.oid = x.op AND s.oid = o.oprnamespace
         GROUP BY c.oid, c.conname, c.conrelid
    LOOP
        EXECUTE format('WITH t AS (SELECT ctid AS place, %s FROM %s) SELECT string_agg(a::text, '' '') FROM t AS a, t AS b WHERE a.place <> b.place AND %s',
                       con.keys, con.rel, con.conflict) INTO bad;
        IF bad IS NOT NULL THEN
            RETURN NEXT format('exclusion constraint %s does not hold in %s: %s', con.conname, con.rel, bad);
        END IF;
    END LOOP;
END $$;
