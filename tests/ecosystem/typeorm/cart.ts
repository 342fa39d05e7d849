import { Check, Column, Entity, Index, PrimaryColumn } from "typeorm";

@Entity("cart")
@Index("cart_expiry_key_idx", { synchronize: false })
@Check("cart_ttl_check", "ttl.is_override(ttl) IS NOT FALSE")
export class Cart {
  @PrimaryColumn("integer")
  id!: number;

  @Column("text", { unique: true })
  owner!: string;

  @Column("timestamptz", { name: "_ts", default: () => "ttl.current_ts()", insert: false, update: false })
  ts!: Date;

  @Column("integer", { nullable: true })
  ttl!: number | null;
}
