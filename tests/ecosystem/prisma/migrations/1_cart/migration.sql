CREATE TABLE "cart" (
    "id" INTEGER NOT NULL,
    "owner" TEXT NOT NULL,
    CONSTRAINT "cart_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "cart_owner_key" ON "cart"("owner");
