"""Keys, defaults and other spellings of options, as Hudi's own classes declare them: read by reflection in a JVM."""

import zipfile

from py4j.protocol import Py4JJavaError

PACKAGE = "org.apache.hudi."
_TYPE = f"{PACKAGE}common.config.ConfigProperty"
_OWN = PACKAGE.replace(".", "/")
_SHADED = ("com/", "org/", "javax/", "io/javalin", "io/netty", "shaded/")


def find_classes(jar):
    """Names of Hudi's classes in a JAR that hold options."""
    wanted = _TYPE.replace(".", "/").encode()
    with zipfile.ZipFile(jar) as archive:
        own = [name for name in archive.namelist() if name.startswith(_OWN) and name.endswith(".class")]
        own = [name for name in own if not name.removeprefix(_OWN).startswith(_SHADED)]
        found = [name for name in own if wanted in archive.read(name)]
    return sorted(name.removesuffix(".class").replace("/", ".") for name in found)


def read_keys(jvm, loader, classes):
    """The options of classes by key: key, default, other spellings with a blank between two, class.

    A default is text; "" where there is none, and two quotes where it is empty.

    Args:
        jvm: a view of the JVM, by py4j.
        loader: the class loader that knows them.
        classes: their names; one without options counts for nothing.
    """
    found = {}
    for name in classes:
        for option in _options_in(jvm, loader, name):
            default = _text(option.defaultValue()) if option.hasDefaultValue() else ""
            row = (option.key(), default, " ".join(sorted(option.getAlternatives())), name.removeprefix(PACKAGE))
            found.setdefault(row[0], row)
    return [found[key] for key in sorted(found)]


def _options_in(jvm, loader, name):
    modifier = jvm.java.lang.reflect.Modifier
    declared = jvm.java.lang.Class.forName(name, False, loader)
    try:
        fields = [field for field in declared.getDeclaredFields() if field.getType().getName() == _TYPE]
    except Py4JJavaError as error:
        if "NoClassDefFoundError" not in str(error.java_exception):
            raise
        return  # it uses a library that is not there: no class of options does
    if not fields:
        return
    jvm.java.lang.Class.forName(name, True, loader)
    module = declared.getField("MODULE$").get(None) if name.endswith("$") else None
    for field in fields:
        is_static = modifier.isStatic(field.getModifiers())
        if is_static or module is not None:
            field.setAccessible(True)
            value = field.get(None if is_static else module)
            if value is not None:
                yield value


def _text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return " ".join(str(value).split()) or '""'
    kind = value.getClass()
    told = value.name() if kind.isEnum() else value.getName() if kind.getName() == "java.lang.Class" else str(value)
    return " ".join(told.split()) or '""'
