/* What the scripted libcuda and libnvidia-ml share: they read the file that FAKE_CUDA_SCRIPT names, anew at each call.
 *
 * Lines of that file, `key value`:
 *   version 12080          cuDriverGetVersion
 *   init 0                 cuInit's answer; likewise count_code, nvml_init
 *   nvml_driver 570.133.07
 *   honour 1               CUDA_VISIBLE_DEVICES (indices only) and CUDA_DEVICE_ORDER are followed, as a driver does
 *   do cuInit segv         when a function is called: segv, abort, hang, exit, leave, flood, garbage, print
 *   device NAME|7|5|BYTES|INTEGRATED|PCI|UUID32HEX|WHOLE32HEX|FREE      in the driver's own order, fastest first
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 16
#define FIELDS 9

static int line_of(const char *key, int nth, char *value, size_t size) {
    const char *path = getenv("FAKE_CUDA_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[512];
    int found = 0;
    size_t length = strlen(key);
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ' && nth-- == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1);
            found = 1;
        }
    }
    if (file) fclose(file);
    return found;
}

static int number_of(const char *key, int otherwise) {
    char value[512];
    return line_of(key, 0, value, sizeof value) ? atoi(value) : otherwise;
}

static void entering(const char *function) {
    char value[512], key[128];
    snprintf(key, sizeof key, "do %s", function);
    if (!line_of(key, 0, value, sizeof value)) return;
    if (!strcmp(value, "segv")) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
    if (!strcmp(value, "abort")) abort();
    if (!strcmp(value, "hang")) for (;;) pause();
    if (!strcmp(value, "exit")) _exit(7);
    if (!strcmp(value, "leave")) _exit(0);
    if (!strcmp(value, "print")) { printf("NVIDIA says hello\n"); fflush(stdout); }
    if (!strcmp(value, "garbage") || !strcmp(value, "flood")) {
        /* Write where the probe keeps its private copy of standard output, whichever number that has. */
        for (int fd = 3; fd < 32; fd++) {
            if (!strcmp(value, "garbage")) {
                if (write(fd, "{\"devices\": [{\"na", 17) == 17) break;
            } else {
                for (int i = 0; i < 20000; i++) if (write(fd, "0123456789012345678901234567890", 31) < 0) break;
            }
        }
        _exit(0);
    }
}

typedef struct { char text[512]; char *field[FIELDS]; } Device;

static int devices_of(Device *devices) {
    int count = 0;
    while (count < MAX_DEVICES && line_of("device", count, devices[count].text, sizeof devices[count].text)) {
        char *at = devices[count].text;
        for (int i = 0; i < FIELDS; i++) {
            devices[count].field[i] = at;
            at = at ? strchr(at, '|') : NULL;
            if (at) *at++ = 0;
        }
        count++;
    }
    return count;
}
