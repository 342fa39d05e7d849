-- A superuser's table, and schemas of two owners.
CREATE TABLE public.secret (what text);
INSERT INTO public.secret VALUES ('the secret');
CREATE SCHEMA evil AUTHORIZATION mallory;
CREATE SCHEMA good AUTHORIZATION boss;
GRANT USAGE ON SCHEMA evil, good TO PUBLIC;

SET ROLE boss;
CREATE TABLE good.victim (id integer PRIMARY KEY);
SELECT ttl.enable('good.victim', 3600);
RESET ROLE;
