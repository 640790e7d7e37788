/* A scripted libnvidia-ml.so.1; see script.h. */
#include "script.h"

static Device all[MAX_DEVICES];

int nvmlInit_v2(void) {
    entering("nvmlInit_v2");
    return number_of("nvml_init", 0);
}

int nvmlShutdown(void) { return 0; }

int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    char value[512];
    if (!line_of("nvml_driver", 0, value, sizeof value)) return 999;
    snprintf(version, size, "%s", value);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    int count = devices_of(all);
    for (int i = 0; i < count; i++) {
        char plain[64] = "", *to = plain;
        for (const char *from = uuid + 4; *from && to < plain + 40; from++) if (*from != '-') *to++ = *from;
        int slice = strcmp(all[i].field[6], all[i].field[7]) != 0;
        if (!strcmp(plain, all[i].field[6]) && !strncmp(uuid, slice ? "MIG-" : "GPU-", 4)) {
            *handle = &all[i];
            return 0;
        }
    }
    return 6;
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
    Device *device = handle;
    if (!device->field[8] || !*device->field[8]) return 3;
    memory[0] = strtoull(device->field[3], NULL, 10);
    memory[1] = strtoull(device->field[8], NULL, 10);
    memory[2] = memory[0] - memory[1];
    return 0;
}
