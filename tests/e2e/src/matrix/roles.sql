-- In each database, by the superuser: what there is to take.
CREATE SCHEMA home AUTHORIZATION {v};
CREATE SCHEMA home_super;
CREATE TABLE home.of_super (what text);
INSERT INTO home.of_super VALUES ('of super');
CREATE TABLE home.of_victim (what text);
INSERT INTO home.of_victim VALUES ('of victim');
ALTER TABLE home.of_victim OWNER TO {v};
GRANT CREATE ON DATABASE {database} TO {a};
GRANT USAGE ON SCHEMA home, home_super TO {a};
