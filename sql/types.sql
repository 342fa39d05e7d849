-- A number of seconds, as functions take it: 1800, '1800', '30 minutes', an interval, a parameter of
-- any of these types. One type with implicit casts, and so one function each: with overloads the
-- literals '30 minutes' and NULL fit several.
CREATE TYPE ttl.seconds;

-- STABLE: what an interval means depends on "IntervalStyle".
CREATE FUNCTION ttl_internal.seconds_in(pg_catalog.cstring) RETURNS ttl.seconds
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'seconds_in_wrapper';
COMMENT ON FUNCTION ttl_internal.seconds_in(pg_catalog.cstring) IS
    'reads a whole number of seconds, or an interval; a month counts as 31 days, a year as 366';

CREATE FUNCTION ttl_internal.seconds_out(ttl.seconds) RETURNS pg_catalog.cstring
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_out';
COMMENT ON FUNCTION ttl_internal.seconds_out(ttl.seconds) IS 'I/O';

CREATE FUNCTION ttl_internal.seconds_recv(pg_catalog.internal) RETURNS ttl.seconds
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_recv';
COMMENT ON FUNCTION ttl_internal.seconds_recv(pg_catalog.internal) IS 'I/O';

CREATE FUNCTION ttl_internal.seconds_send(ttl.seconds) RETURNS pg_catalog.bytea
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'ttl_seconds_send';
COMMENT ON FUNCTION ttl_internal.seconds_send(ttl.seconds) IS 'I/O';

CREATE TYPE ttl.seconds (
    INPUT = ttl_internal.seconds_in, OUTPUT = ttl_internal.seconds_out, RECEIVE = ttl_internal.seconds_recv, SEND = ttl_internal.seconds_send,
    LIKE = integer, CATEGORY = 'U');
COMMENT ON TYPE ttl.seconds IS
    'a number of seconds for the functions of ttl_ext; from numbers, intervals and text';

-- Implicit: no other function takes the type, and it has no operators, so nothing is ambiguous.
CREATE CAST (integer AS ttl.seconds) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (integer AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (smallint AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (smallint AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (bigint AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (bigint AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (numeric AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (numeric AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (real AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (real AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (double precision AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (double precision AS ttl.seconds) IS 'arguments of functions of ttl_ext, if without a fraction';
CREATE CAST (interval AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (interval AS ttl.seconds) IS 'arguments of functions of ttl_ext';
CREATE CAST (pg_catalog.text AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (pg_catalog.text AS ttl.seconds) IS 'arguments of functions of ttl_ext, from drivers';
CREATE CAST (pg_catalog.varchar AS ttl.seconds) WITH INOUT AS IMPLICIT;
COMMENT ON CAST (pg_catalog.varchar AS ttl.seconds) IS 'arguments of functions of ttl_ext, from drivers';

-- For a row's override: UPDATE … SET ttl = '30 minutes'::ttl.seconds.
CREATE CAST (ttl.seconds AS integer) WITHOUT FUNCTION AS ASSIGNMENT;
COMMENT ON CAST (ttl.seconds AS integer) IS 'overrides of rows';
