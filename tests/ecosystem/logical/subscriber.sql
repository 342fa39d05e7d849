CREATE TABLE cart (id integer PRIMARY KEY, owner text);
SELECT ttl.enable('cart', '30 days');
SELECT ttl.pause('cart');
