/* Tests of attributes and of the order of their callbacks. The requirements come from MPI 5.0,
 * section 7.7.4, and from the discussion of MPI_TYPE_DUP in 1996. */
#include <ddtc.h>
#include <stdint.h>
#include "check.h"

static char said[4096];
static int copy_fails, delete_fails, copies;

static void say(const char *format, int keyval, long value)
{
    snprintf(said + strlen(said), sizeof said - strlen(said), format, keyval, value);
}
#define SAID(format, ...)                                                                                              \
    do {                                                                                                               \
        char said_expected[512];                                                                                       \
        snprintf(said_expected, sizeof said_expected, format, __VA_ARGS__);                                            \
        if (strcmp(said, said_expected)) {                                                                             \
            fprintf(stderr, "%s:%d: \"%s\", expected \"%s\"\n", __FILE__, __LINE__, said, said_expected);              \
            exit(1);                                                                                                   \
        }                                                                                                              \
        said[0] = 0;                                                                                                   \
    } while (0)

static int copy(ddtc_datatype old, int keyval, void *extra, void *in, void *out, int *flag)
{
    int size;
    OK(ddtc_type_size(old, &size)); /* A callback may call the library. */
    EQ(*(int *)extra, 99);
    copies++;
    say("copy %d %ld;", keyval, (long)(intptr_t)in);
    if (copy_fails && copies == copy_fails) return 77;
    *(void **)out = (char *)in + 100;
    *flag = 1;
    return 0;
}

static int leave_out(ddtc_datatype old, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)old, (void)extra, (void)in, (void)out;
    say("omit %d %ld;", keyval, 0);
    *flag = 0;
    return 0;
}

static int delete(ddtc_datatype type, int keyval, void *value, void *extra)
{
    int size;
    OK(ddtc_type_size(type, &size));
    EQ(*(int *)extra, 99);
    say("delete %d %ld;", keyval, (long)(intptr_t)value);
    return delete_fails && delete_fails == (int)(intptr_t)value ? 55 : 0;
}

/* Delete callback for a use of duplicates that Cownie described in the discussion of 1996 (notes 1
 * and 2): an attribute of the original type refers to a duplicate of that type. This callback frees
 * the duplicate. */
static int free_copy(ddtc_datatype type, int keyval, void *value, void *extra)
{
    (void)type, (void)keyval, (void)extra;
    ddtc_datatype *mine = value;
    OK(ddtc_type_free(mine));
    free(mine);
    return 0;
}

static long get(ddtc_datatype t, int keyval)
{
    void *value = (void *)-1;
    int flag;
    OK(ddtc_type_get_attr(t, keyval, &value, &flag));
    return flag ? (long)(intptr_t)value : -1;
}

int main(void)
{
    int extra = 99, a, b, c, omit, dup_fn, none;
    ddtc_datatype t, d, v;
    OK(ddtc_type_create_keyval(copy, delete, &a, &extra));
    OK(ddtc_type_create_keyval(copy, delete, &b, &extra));
    OK(ddtc_type_create_keyval(copy, delete, &c, &extra));
    OK(ddtc_type_create_keyval(leave_out, delete, &omit, &extra));
    OK(ddtc_type_create_keyval(DDTC_DUP_FN, DDTC_NULL_DELETE_FN, &dup_fn, NULL));
    OK(ddtc_type_create_keyval(DDTC_NULL_COPY_FN, DDTC_NULL_DELETE_FN, &none, NULL));

    OK(ddtc_type_vector(3, 1, 2, DDTC_TYPE_INT, &t));
    OK(ddtc_type_set_attr(t, a, (void *)1));
    OK(ddtc_type_set_attr(t, b, (void *)2));
    OK(ddtc_type_set_attr(t, omit, (void *)3));
    OK(ddtc_type_set_attr(t, dup_fn, (void *)4));
    OK(ddtc_type_set_attr(t, none, (void *)5));
    EQ(get(t, a), 1);
    EQ(get(t, c), -1);
    SAID("%s", "");
    /* When an attribute that has a value is set, the old value is deleted first. */
    OK(ddtc_type_set_attr(t, b, (void *)6));
    SAID("delete %d 2;", b);

    /* The attributes of a duplicate have the values that the copy functions return. The copy
     * functions are called in the order in which the attributes were set. */
    OK(ddtc_type_commit(&t));
    OK(ddtc_type_dup(t, &d));
    SAID("copy %d 1;omit %d 0;copy %d 6;", a, omit, b);
    TRUE(get(d, a) == 101 && get(d, b) == 106 && get(d, omit) == -1 && get(d, dup_fn) == 4 && get(d, none) == -1);
    TRUE(get(t, a) == 1 && get(t, b) == 6 && get(t, omit) == 3);

    /* A type and its duplicate have separate attributes, but share the committed state and the
     * kernel. */
    ddtc_kernel k1, k2;
    OK(ddtc_type_get_kernel(t, DDTC_PACK, &k1));
    OK(ddtc_type_get_kernel(d, DDTC_PACK, &k2));
    TRUE(k1.entry && k1.entry == k2.entry && k1.context == k2.context);

    /* A type made by another constructor has no attributes. */
    OK(ddtc_type_contiguous(2, t, &v));
    EQ(get(v, a), -1);
    OK(ddtc_type_free(&v));
    SAID("%s", "");

    /* When a type is freed, its attributes are deleted in the reverse order of setting. */
    OK(ddtc_type_free(&d));
    SAID("delete %d 106;delete %d 101;", b, a);

    /* If a copy function fails, the duplication fails with the code of that function. The values
     * that were already copied are deleted, the old type is unchanged, and the new handle is null.
     */
    copies = 0, copy_fails = 2;
    d = (ddtc_datatype)(intptr_t)1;
    EQ(ddtc_type_dup(t, &d), 77);
    EQ(d, DDTC_DATATYPE_NULL);
    SAID("copy %d 1;omit %d 0;copy %d 6;delete %d 101;", a, omit, b, a);
    TRUE(get(t, a) == 1 && get(t, b) == 6 && get(t, omit) == 3 && get(t, dup_fn) == 4);
    copy_fails = 0;

    /* ddtc_type_delete_attr calls the delete callback. Deleting the same attribute again is an
     * error. */
    OK(ddtc_type_delete_attr(t, omit));
    SAID("delete %d 3;", omit);
    FAILS(DDTC_ERR_KEYVAL, "type_keyval", ddtc_type_delete_attr(t, omit));

    /* Freeing a keyval makes the variable invalid, but the keyval lives until its last attribute is
     * deleted. */
    int old_a = a;
    OK(ddtc_type_free_keyval(&a));
    EQ(a, DDTC_KEYVAL_INVALID);
    int again_a = old_a;
    /* The keyval is in use, so it still exists and can be freed again (MPI 5.0, 7.7.2). */
    OK(ddtc_type_free_keyval(&again_a));
    EQ(again_a, DDTC_KEYVAL_INVALID);
    EQ(get(t, old_a), 1);
    EQ(get(DDTC_TYPE_INT, old_a), -1);
    OK(ddtc_type_dup(t, &d));
    SAID("copy %d 1;copy %d 6;", old_a, b);
    OK(ddtc_type_free(&d));
    SAID("delete %d 106;delete %d 101;", b, old_a);
    /* The keyval was freed, but one attribute still uses it. As long as that is so, attributes with
     * this keyval can be set and deleted, even on other types. */
    OK(ddtc_type_contiguous(2, DDTC_TYPE_INT, &d));
    OK(ddtc_type_set_attr(d, old_a, (void *)9));
    OK(ddtc_type_set_attr(d, old_a, (void *)10));
    OK(ddtc_type_delete_attr(d, old_a));
    SAID("delete %d 9;delete %d 10;", old_a, old_a);
    FAILS(DDTC_ERR_KEYVAL, "of an attribute", ddtc_type_delete_attr(d, old_a));
    OK(ddtc_type_free(&d));

    /* If a delete function fails, freeing the type fails with the code of that function. Attributes
     * that were already deleted are gone. The attribute whose deletion failed, the attributes after
     * it and the handle stay. */
    OK(ddtc_type_set_attr(t, c, (void *)7));
    delete_fails = 6;
    ddtc_datatype same = t;
    EQ(ddtc_type_free(&t), 55);
    EQ(t, same);
    SAID("delete %d 7;delete %d 6;", c, b);
    TRUE(get(t, c) == -1 && get(t, b) == 6);
    EQ(ddtc_type_set_attr(t, b, (void *)8), 55);
    EQ(get(t, b), 6);
    said[0] = 0;
    delete_fails = 0;
    OK(ddtc_type_free(&t));
    SAID("delete %d 6;delete %d 1;", b, old_a);
    /* Freeing the type deleted the last attribute with this keyval, so the keyval no longer exists.
     */
    void *unset = &extra;
    int flag = 5;
    FAILS(DDTC_ERR_KEYVAL, "not freed", ddtc_type_get_attr(DDTC_TYPE_INT, old_a, &unset, &flag));
    FAILS(DDTC_ERR_KEYVAL, "not freed", ddtc_type_set_attr(DDTC_TYPE_INT, old_a, (void *)9));
    FAILS(DDTC_ERR_KEYVAL, "not freed", ddtc_type_delete_attr(DDTC_TYPE_INT, old_a));
    again_a = old_a;
    FAILS(DDTC_ERR_KEYVAL, "not freed", ddtc_type_free_keyval(&again_a));
    EQ(again_a, old_a);
    TRUE(unset == &extra && flag == 5);

    /* Predefined types can have attributes. */
    OK(ddtc_type_set_attr(DDTC_TYPE_INT, b, (void *)1));
    EQ(get(DDTC_TYPE_INT, b), 1);
    OK(ddtc_type_dup(DDTC_TYPE_INT, &d));
    EQ(get(d, b), 101);
    OK(ddtc_type_free(&d));
    OK(ddtc_type_delete_attr(DDTC_TYPE_INT, b));
    EQ(get(DDTC_TYPE_INT, b), -1);

    /* The attribute of a type can hold a duplicate of that type. The duplicate lives until the
     * original is freed, because the delete callback frees it then. */
    int tag;
    OK(ddtc_type_create_keyval(DDTC_NULL_COPY_FN, free_copy, &tag, NULL));
    OK(ddtc_type_vector(4, 1, 2, DDTC_TYPE_DOUBLE, &t));
    ddtc_datatype *mine = malloc(sizeof *mine);
    OK(ddtc_type_dup(t, mine));
    OK(ddtc_type_set_attr(t, tag, mine));
    OK(ddtc_type_free(&t));

    /* A duplicate does not get the name of the original. */
    char name[DDTC_MAX_OBJECT_NAME];
    int n;
    OK(ddtc_type_contiguous(2, DDTC_TYPE_INT, &t));
    OK(ddtc_type_get_name(t, name, &n));
    EQ(n, 0);
    OK(ddtc_type_set_name(t, "pair of ints"));
    OK(ddtc_type_dup(t, &d));
    OK(ddtc_type_get_name(t, name, &n));
    TRUE(n == 12 && !strcmp(name, "pair of ints"));
    OK(ddtc_type_get_name(d, name, &n));
    TRUE(n == 0 && name[0] == 0);
    char huge[400];
    memset(huge, 'x', sizeof huge);
    huge[399] = 0;
    OK(ddtc_type_set_name(d, huge));
    OK(ddtc_type_get_name(d, name, &n));
    TRUE(n == DDTC_MAX_OBJECT_NAME - 1 && (int)strlen(name) == n);
    OK(ddtc_type_get_name(DDTC_TYPE_LONG_DOUBLE, name, &n));
    EQ(strcmp(name, "MPI_LONG_DOUBLE"), 0);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_free(&d));

    OK(ddtc_type_free_keyval(&b));
    OK(ddtc_type_free_keyval(&c));
    return 0;
}
