import os
import sys

sys.path[:0] = [".", "migrations"]

from alembic import context
from sqlalchemy import create_engine

from keep_ttl import include_object
from models import Base

engine = create_engine("postgresql+psycopg://")  # by PGHOST and the like
if os.environ.get("WITHOUT_KEEP_TTL"):
    include_object = None
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, include_object=include_object)
    with context.begin_transaction():
        context.run_migrations()
