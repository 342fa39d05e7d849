import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table(
        "cart",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("owner", sa.String, nullable=False, unique=True),
        sa.Column("items", sa.Integer, nullable=False),
    )


def downgrade():
    op.drop_table("cart")
