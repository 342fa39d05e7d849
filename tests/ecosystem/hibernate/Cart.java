import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.OffsetDateTime;

@Entity
@Table(name = "cart")
public class Cart {
    @Id
    Integer id;

    @Column(nullable = false, unique = true, columnDefinition = "text")
    String owner;

    // These two are needed only by who wants to read or write them.
    @Column(name = "_ts", insertable = false, updatable = false)
    OffsetDateTime ts;

    @Column(name = "ttl")
    Integer ttl;

    protected Cart() {}

    public Cart(int id, String owner) {
        this.id = id;
        this.owner = owner;
    }
}
