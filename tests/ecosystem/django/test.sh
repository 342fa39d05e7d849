# shellcheck shell=bash
# Django: sessions and cache in the database, a model, migrations there and back.
use_pip
export DJANGO_SETTINGS_MODULE=settings PYTHONPATH=.

django-admin migrate -v 0
expect "no migration is missing" "$(django-admin makemigrations --check --dry-run)" "No changes detected"
expect_ttl django_session
expect_ttl django_cache
expect_ttl shop_cart
python checks.py
expect "expired on disk: sessions, cache, carts" \
    "$(on_disk django_session) $(on_disk django_cache) $(on_disk shop_cart)" "2 2 2"

django-admin migrate -v 0 shop 0001
expect "there and back: nothing is left" \
    "$(sql -c "SELECT count(*) FROM pg_attribute WHERE attrelid = 'shop_cart'::regclass AND attnum > 0 AND NOT attisdropped")" 3
expect "no policy in force" "$(sql -c "SELECT count(*) FROM ttl.tables WHERE problems::text ~ 'off: ttl'")" 0
django-admin migrate -v 0
expect_ttl shop_cart
