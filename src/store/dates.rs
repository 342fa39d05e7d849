//! The types that a TTL index's column can have (M2).

use pgrx::pg_sys;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum DateKind {
    Timestamptz,
    /// Local time in the rule's time zone.
    Timestamp,
    /// Midnight in the rule's time zone.
    Date,
}

/// A date type, or an array of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DateType {
    pub(crate) kind: DateKind,
    pub(crate) is_array: bool,
}

impl DateKind {
    /// All of them, in the order of [`super::extension::Functions`]'s arrays.
    pub(crate) const ALL: [Self; 3] = [Self::Timestamptz, Self::Timestamp, Self::Date];

    pub(crate) const fn type_oid(self) -> pg_sys::Oid {
        match self {
            Self::Timestamptz => pg_sys::TIMESTAMPTZOID,
            Self::Timestamp => pg_sys::TIMESTAMPOID,
            Self::Date => pg_sys::DATEOID,
        }
    }

    pub(crate) const fn array_oid(self) -> pg_sys::Oid {
        match self {
            Self::Timestamptz => pg_sys::TIMESTAMPTZARRAYOID,
            Self::Timestamp => pg_sys::TIMESTAMPARRAYOID,
            Self::Date => pg_sys::DATEARRAYOID,
        }
    }

    /// Its index in [`Self::ALL`].
    pub(crate) const fn number(self) -> usize {
        self as usize
    }
}

impl DateType {
    /// Whether it is local time, which a time zone makes an instant (M13).
    pub(crate) fn is_local(self) -> bool {
        self.kind != DateKind::Timestamptz
    }

    /// The date type, or array of one, of that OID.
    pub(crate) fn of(type_oid: pg_sys::Oid) -> Option<Self> {
        DateKind::ALL.into_iter().find_map(|kind| {
            let is_array = kind.array_oid() == type_oid;
            (is_array || kind.type_oid() == type_oid).then_some(Self { kind, is_array })
        })
    }
}
