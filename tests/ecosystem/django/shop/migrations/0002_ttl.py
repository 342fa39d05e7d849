from django.core.management import call_command
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial"), ("sessions", "0001_initial")]
    operations = [
        # Tables with a date of their own, and an index on it.
        migrations.RunPython(lambda *_: call_command("createcachetable"), migrations.RunPython.noop),
        migrations.RunSQL(
            [
                "SELECT ttl.expire_index('django_session_expire_date_a5c62663', 0)",
                "SELECT ttl.expire_index('django_cache_expires', 0)",
            ],
            [
                "SELECT ttl.expire_index('django_session_expire_date_a5c62663', NULL)",
                "SELECT ttl.expire_index('django_cache_expires', NULL)",
            ],
        ),
        # 30 days after the last write.
        migrations.RunSQL(
            "SELECT ttl.enable('shop_cart', '30 days')",
            "SELECT ttl.disable('shop_cart', drop_columns => true)",
        ),
    ]
