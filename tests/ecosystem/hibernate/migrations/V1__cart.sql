CREATE TABLE cart (id integer PRIMARY KEY, owner text NOT NULL UNIQUE);
