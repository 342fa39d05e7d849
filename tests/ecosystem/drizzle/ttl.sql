SELECT ttl.enable('cart', '30 days', index => 'btree');
