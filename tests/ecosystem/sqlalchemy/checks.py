"""What an application sees of expired rows."""

from sqlalchemy import create_engine, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from models import Cart

engine = create_engine("postgresql+psycopg://")

with Session(engine) as session:
    session.add_all([Cart(id=n, owner=f"user {n}") for n in range(1, 11)])
    session.commit()
    held = session.get(Cart, 1)
    session.execute(text("SET LOCAL ttl.preserve_ts = on"))
    session.execute(text("UPDATE cart SET _ts = '2001-01-01' WHERE id <= 5"))
    session.commit()

    # An object that has expired: reading it again, or writing it, says so.
    try:
        session.refresh(held)
        raise AssertionError("an expired object was refreshed")
    except InvalidRequestError:
        session.rollback()

with Session(engine) as session:
    assert session.scalars(select(Cart.id).order_by(Cart.id)).all() == [6, 7, 8, 9, 10]
    # Its key is free: for merge, for an upsert, for many values at a time.
    session.merge(Cart(id=1, owner="user 1", items=1))
    session.commit()
    upsert = insert(Cart).values(id=2, owner="user 2", items=2)
    upsert = upsert.on_conflict_do_update(index_elements=["id"], set_={"items": 99})
    session.execute(upsert)
    session.add_all([Cart(id=n, owner=f"user {n}", items=n) for n in (3, 4)])
    session.commit()
    rows = session.execute(select(Cart.id, Cart.items).where(Cart.id < 6).order_by(Cart.id)).all()
    assert [tuple(row) for row in rows] == [(1, 1), (2, 2), (3, 3), (4, 4)], rows
    # Expired between loading and writing.
    loaded = session.get(Cart, 6)
    session.execute(text("SET LOCAL ttl.preserve_ts = on"))
    session.execute(text("UPDATE cart SET _ts = '2001-01-01' WHERE id = 6"))
    loaded.items = 7
    try:
        session.flush()
        raise AssertionError("an expired object was updated")
    except StaleDataError:
        session.rollback()

# Read in pieces.
with Session(engine) as session:
    got = session.scalars(select(Cart), execution_options={"yield_per": 2}).all()
    assert len(got) == 9, len(got)
print("ok: ORM")
