CREATE TABLE cart (id integer PRIMARY KEY, owner text);
SELECT ttl.enable('cart', '30 days');
CREATE PUBLICATION carts FOR TABLE cart;
