"""What an application sees of expired rows."""

from datetime import timedelta

import django

django.setup()

from django.contrib.sessions.backends.db import SessionStore, UpdateError
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from shop.models import Cart

PAST = timezone.now() - timedelta(days=1)


def new_session():
    store = SessionStore()
    store["user"] = 1
    store.save()
    return store


def sql(*statements):
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


# Sessions: an expired one is gone, for those who look and for one who has it open.
live, gone = new_session(), new_session()
Session.objects.filter(pk=gone.session_key).update(expire_date=PAST)
assert Session.objects.count() == 1
assert SessionStore(live.session_key).get("user") == 1
assert not gone.exists(gone.session_key)
assert SessionStore(gone.session_key).get("user") is None
try:
    gone.save()
    raise AssertionError("an expired session was saved")
except UpdateError:
    pass

# The cache: a key whose value has expired can be added.
cache.set("a", 1)
cache.set("b", 1)
sql(f"UPDATE django_cache SET expires = '{PAST}'")
assert cache.get("a") is None
assert cache.add("a", 2) and not cache.add("a", 3)
assert cache.get("a") == 2

# A model: unique keys are free, objects that have expired are not found.
for owner in ("ada", "bob", "eve"):
    Cart.objects.create(owner=owner)
bob = Cart.objects.get(owner="bob")
sql("SET LOCAL ttl.preserve_ts = on", "UPDATE shop_cart SET _ts = '2001-01-01' WHERE owner <> 'ada'")
assert [cart.owner for cart in Cart.objects.all()] == ["ada"]
cart, created = Cart.objects.update_or_create(owner="eve", defaults={"items": [1]})
assert created
try:
    bob.save(update_fields=["items"])
    raise AssertionError("an expired object was updated")
except DatabaseError:
    pass
cart.delete()
print("ok: sessions, cache, model")
