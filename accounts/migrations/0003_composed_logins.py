from django.db import migrations

from accounts.normalization import composed


def compose(apps, _):
    """Logins are stored composed (NFC) from here on. Where that is another user's login, an administrator decides."""
    users = apps.get_model("accounts", "User").objects
    for sys_id, login in users.values_list("sys_id", "login").iterator():
        spelled = composed(login)
        if spelled != login and not users.filter(login=spelled).exists():
            users.filter(sys_id=sys_id).update(login=spelled)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_provider_sessions'),
    ]

    operations = [
        migrations.RunPython(compose, migrations.RunPython.noop),
    ]
