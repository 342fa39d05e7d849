from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.execute("SELECT ttl.enable('cart', '30 days')")


def downgrade():
    op.execute("SELECT ttl.disable('cart', drop_columns => true)")
