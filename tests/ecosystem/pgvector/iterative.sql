SET hnsw.iterative_scan = strict_order;
