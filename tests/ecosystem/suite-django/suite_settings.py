"""Django's tests on PostgreSQL: each database is a copy of the template in which tables get a time to live."""

import os

server = {
    "ENGINE": "django.db.backends.postgresql",
    "HOST": os.environ["PGHOST"],
    "PORT": os.environ["PGPORT"],
    "USER": "app",
}
DATABASES = {
    "default": {**server, "NAME": "django_default", "TEST": {"NAME": "django_default", "TEMPLATE": "django_template"}},
    "other": {**server, "NAME": "django_other", "TEST": {"NAME": "django_other", "TEMPLATE": "django_template"}},
}
SECRET_KEY = "for tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
