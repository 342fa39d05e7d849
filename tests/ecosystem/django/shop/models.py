from django.db import models


class Cart(models.Model):
    owner = models.CharField(max_length=50, unique=True)
    items = models.JSONField(default=list)
