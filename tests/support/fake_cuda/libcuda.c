/* A scripted libcuda.so.1; see script.h. */
#include "script.h"

static Device all[MAX_DEVICES];
static int visible[MAX_DEVICES], visible_count;

static int by_address(const void *a, const void *b) {
    return strcmp(all[*(const int *)a].field[5], all[*(const int *)b].field[5]);
}

static void choose(void) {
    int order[MAX_DEVICES], count = devices_of(all);
    const char *sorting = getenv("CUDA_DEVICE_ORDER"), *wanted = getenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; i < count; i++) order[i] = i;
    visible_count = 0;
    if (!number_of("honour", 0)) wanted = NULL;
    else if (sorting && !strcmp(sorting, "PCI_BUS_ID")) qsort(order, count, sizeof order[0], by_address);
    if (!wanted) {
        for (int i = 0; i < count; i++) visible[visible_count++] = order[i];
        return;
    }
    for (const char *at = wanted; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *end;
        long index = strtol(at, &end, 10);
        if (end == at || index < 0 || index >= count) break;
        visible[visible_count++] = order[index];
    }
}

int cuDriverGetVersion(int *version) {
    entering("cuDriverGetVersion");
    *version = number_of("version", 12080);
    return 0;
}

int cuInit(unsigned flags) {
    (void)flags;
    entering("cuInit");
    choose();
    int code = number_of("init", 0);
    return code == 0 && visible_count == 0 && number_of("honour", 0) ? 100 : code;
}

int cuDeviceGetCount(int *count) {
    entering("cuDeviceGetCount");
    *count = visible_count;
    return number_of("count_code", 0);
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal == number_of("lost", -1) ? 46 : 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    entering("cuDeviceGetName");
    snprintf(name, size, "%s", all[visible[device]].field[0]);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = strtoull(all[visible[device]].field[3], NULL, 10);
    return 0;
}

int cuDeviceGetAttribute(int *value, int which, int device) {
    char **field = all[visible[device]].field;
    unsigned domain = 0, bus = 0, slot = 0;
    sscanf(field[5], "%x:%x:%x", &domain, &bus, &slot);
    switch (which) {
    case 18: *value = atoi(field[4]); return 0;
    case 33: *value = bus; return 0;
    case 34: *value = slot; return 0;
    case 50: *value = domain; return 0;
    case 75: *value = atoi(field[1]); return 0;
    case 76: *value = atoi(field[2]); return 0;
    default: return 1;
    }
}

#ifndef OLD_DRIVER
int cuDeviceGetPCIBusId(char *text, int size, int device) {
    snprintf(text, size, "%s", all[visible[device]].field[5]);
    return 0;
}
#endif

static int uuid_of(unsigned char *uuid, const char *hex) {
    for (int i = 0; i < 16; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) return 1;
        uuid[i] = byte;
    }
    return 0;
}

#ifndef OLD_DRIVER
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) { return uuid_of(uuid, all[visible[device]].field[6]); }
#endif

int cuDeviceGetUuid(unsigned char *uuid, int device) { return uuid_of(uuid, all[visible[device]].field[7]); }

int cuGetErrorName(int code, const char **name) {
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : code == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : NULL;
    return *name ? 0 : 1;
}

#ifdef FOR_RUNTIME
/* As much more as CUDA's runtime library (13.0) needs to ask for devices and to pass on what cuInit answered. */
#include <dlfcn.h>

static int rest(void) { return number_of("rest", 999); }

int cuTensorMapEncodeTiled(void) { return 801; }

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status) {
    char newer[128];
    (void)version;
    (void)flags;
    snprintf(newer, sizeof newer, "%s_v2", name);
    *function = dlsym(RTLD_DEFAULT, name);
    if (!*function) *function = dlsym(RTLD_DEFAULT, newer);
    if (!*function) *function = (void *)rest;
    if (status) *status = 0;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

int cuGetExportTable(const void **table, const void *id) {
    (void)table;
    (void)id;
    return 1;
}
#endif
