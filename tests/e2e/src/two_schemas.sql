-- A superuser's table, and schemas of two owners.
CREATE TABLE public.secret (what text);
INSERT INTO public.secret VALUES ('the secret');
CREATE SCHEMA evil AUTHORIZATION attacker;
CREATE SCHEMA good AUTHORIZATION victim;
GRANT USAGE ON SCHEMA evil, good TO PUBLIC;

SET ROLE victim;
CREATE TABLE good.t (id integer PRIMARY KEY);
SELECT ttl.enable('good.t', 3600);
RESET ROLE;
