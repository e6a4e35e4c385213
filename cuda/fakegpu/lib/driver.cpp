// The driver: contexts, memory, streams, events, modules, launches.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <vector>

#include "fake.h"

using namespace fake;
typedef int CUresult;
typedef uint64_t Address;

// ENTER is how each call begins: the error that a test wants of it. BOUND wants a device that is current on the thread, as most
// calls do.
#define ENTER                                  \
  if (int code = failing(__func__)) return code
#define BOUND                                  \
  ENTER;                                       \
  if (current() < 0) return invalid_context;   \
  if (int code = sticky()) return code

struct Context { int device; };
static Context primary[16];
static thread_local Context* bound;
static std::atomic<int> fault{0};

namespace fake {
int sticky() { return fault; }
void broken(int code) {
  int none = 0;
  if (code) fault.compare_exchange_strong(none, code);
  else fault = 0;
}
int current() { return bound ? bound->device : -1; }
}  // namespace fake

static int devices() { return (int)option("devices", 1); }

API CUresult cuInit(unsigned flags) {
  ENTER;
  return flags ? invalid_value : devices() > 0 ? ok : no_device;
}
API CUresult cuDriverGetVersion(int* v) { ENTER; *v = (int)option("version", 12040); return ok; }
API CUresult cuDeviceGetCount(int* n) { ENTER; *n = devices(); return ok; }
API CUresult cuDeviceGet(int* d, int i) {
  ENTER;
  if (i < 0 || i >= devices()) return invalid_device;
  *d = i;
  return ok;
}
API CUresult cuDeviceGetName(char* s, int n, int d) { ENTER; snprintf(s, n, "fake device %d", d); return ok; }
API CUresult cuDeviceTotalMem_v2(size_t* n, int) { ENTER; *n = option("memory", 8L << 30); return ok; }
API CUresult cuDeviceGetAttribute(int* v, int attribute, int d) {
  ENTER;
  if (d < 0 || d >= devices()) return invalid_device;
  switch (attribute) {
    case 16: *v = 108; return ok;
    case 75: *v = (int)option("capability", 80) / 10; return ok;
    case 76: *v = (int)option("capability", 80) % 10; return ok;
    case 97: *v = 166912; return ok;
  }
  return invalid_value;
}
API CUresult cuDeviceCanAccessPeer(int* yes, int a, int b) { ENTER; *yes = a != b; return ok; }
API CUresult cuDevicePrimaryCtxRetain(Context** c, int d) {
  ENTER;
  if (d < 0 || d >= devices()) return invalid_device;
  primary[d].device = d;
  *c = &primary[d];
  return ok;
}
API CUresult cuDevicePrimaryCtxRelease_v2(int d) { ENTER; return d < 0 || d >= devices() ? invalid_device : ok; }
API CUresult cuCtxSetCurrent(Context* c) { ENTER; bound = c; return ok; }

// Memory. An allocation lies between guards, and is full of NaN.
static const size_t guard = 256;
static std::mutex lock;
static std::map<Address, size_t> allocations;
static size_t used;

namespace fake {
bool inside(Address p, size_t n) {
  std::lock_guard<std::mutex> held(lock);
  auto it = allocations.upper_bound(p);
  if (it == allocations.begin()) return false;
  --it;
  return p + n <= it->first + it->second;
}
}  // namespace fake

static bool guarded(Address p, size_t n) {
  auto* before = (unsigned char*)p - guard;
  auto* after = (unsigned char*)p + n;
  for (size_t i = 0; i < guard; i++)
    if (before[i] != 0xfd || after[i] != 0xfd) return false;
  return true;
}

API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  BOUND;
  std::lock_guard<std::mutex> held(lock);
  *total = option("memory", 8L << 30);
  *free = *total - used;
  return ok;
}
API CUresult cuMemAlloc_v2(Address* p, size_t n) {
  BOUND;
  if (!n) return invalid_value;
  std::lock_guard<std::mutex> held(lock);
  if (used + n > (size_t)option("memory", 8L << 30)) return out_of_memory;
  char* room = (char*)aligned_alloc(guard, (n + 3 * guard - 1) / guard * guard);
  memset(room, 0xfd, guard);
  memset(room + guard, 0xff, n);
  memset(room + guard + n, 0xfd, guard);
  *p = (Address)(room + guard);
  used += n;
  allocations[*p] = n;
  return ok;
}
API CUresult cuMemFree_v2(Address p) {  // which waits for the device
  BOUND;
  settle();
  std::lock_guard<std::mutex> held(lock);
  auto it = allocations.find(p);
  if (it == allocations.end()) return invalid_value;
  bool whole = guarded(p, it->second);
  used -= it->second;
  allocations.erase(it);
  free((char*)p - guard);
  if (!whole) broken(illegal_address);
  return whole ? ok : illegal_address;
}
API CUresult cuMemHostAlloc(void** p, size_t n, unsigned) {
  BOUND;
  *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);
  return n && *p ? ok : invalid_value;
}
API CUresult cuMemFreeHost(void* p) { BOUND; free(p); return ok; }

static CUresult copy(Address to, bool check_to, Address from, bool check_from, size_t n, void* s) {
  stream(s)->put([=] {
    if ((check_to && !inside(to, n)) || (check_from && !inside(from, n))) return (int)illegal_address;
    memmove((void*)to, (void*)from, n);
    return (int)ok;
  });
  return ok;
}
API CUresult cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* s) { BOUND; return copy(to, true, (Address)from, false, n, s); }
API CUresult cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* s) { BOUND; return copy((Address)to, false, from, true, n, s); }
API CUresult cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void* s) { BOUND; return copy(to, true, from, true, n, s); }
API CUresult cuMemsetD8Async(Address p, unsigned char v, size_t n, void* s) {
  BOUND;
  stream(s)->put([=] {
    if (!inside(p, n)) return (int)illegal_address;
    memset((void*)p, v, n);
    return (int)ok;
  });
  return ok;
}

// Streams and events.
struct Event {
  Stream* in = nullptr;
  uint64_t at = 0;
  double ms = 0;
};
API CUresult cuStreamCreate(Stream** s, unsigned flags) { BOUND; *s = new Stream; return flags == 1 ? ok : invalid_value; }
API CUresult cuStreamDestroy_v2(Stream* s) { BOUND; delete s; return ok; }
API CUresult cuStreamSynchronize(void* s) {
  BOUND;
  stream(s)->wait(stream(s)->last());
  return sticky();
}
API CUresult cuStreamQuery(void* s) {
  BOUND;
  bool passed = stream(s)->passed(stream(s)->last());
  return passed ? sticky() : (int)not_ready;
}
API CUresult cuStreamWaitEvent(void* s, Event* e, unsigned flags) {
  BOUND;
  if (flags) return invalid_value;
  Stream* in = e->in;
  uint64_t at = e->at;
  stream(s)->put([=] {
    if (in) in->wait(at);
    return (int)ok;
  });
  return ok;
}
API CUresult cuEventCreate(Event** e, unsigned) { BOUND; *e = new Event; return ok; }
API CUresult cuEventDestroy_v2(Event* e) { BOUND; if (e->in) e->in->wait(e->at); delete e; return ok; }
API CUresult cuEventRecord(Event* e, void* s) {
  BOUND;
  e->in = stream(s);
  e->in->put([=] {
    e->ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return (int)ok;
  });
  e->at = e->in->last();
  return ok;
}
API CUresult cuEventSynchronize(Event* e) {
  BOUND;
  if (e->in) e->in->wait(e->at);
  return sticky();
}
API CUresult cuEventElapsedTime(float* ms, Event* from, Event* to) {
  BOUND;
  if (!from->in || !to->in) return invalid_value;
  if (!from->in->passed(from->at) || !to->in->passed(to->at)) return not_ready;
  *ms = (float)(to->ms - from->ms);
  return ok;
}

// Code. A module is text; its kernels are those that were compiled for this library.
struct Module { const Kernels* kernels; };
struct Function { Kernel kernel; unsigned shared; };

// complain writes to the error log that the options name.
static CUresult complain(CUresult code, const char* why, unsigned n, const int* option, void** value) {
  char* log = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < n; i++) {
    if (option[i] == 5) log = (char*)value[i];
    if (option[i] == 6) size = (size_t)value[i];
  }
  if (log && size) snprintf(log, size, "ptxas fatal : %s", why);
  return code;
}
API CUresult cuModuleLoadDataEx(Module** m, const char* image, unsigned n, int* option, void** value) {
  BOUND;
  int major, minor;
  const char* version = strstr(image, ".version");
  if (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2) return complain(invalid_ptx, "no .version in it", n, option, value);
  if (major * 10 + minor > fake::option("ptx", 84)) return complain(unsupported_ptx, "unsupported .version", n, option, value);
  Kernels names;
  static const std::regex entry("\\.entry\\s+(\\w+)");
  for (std::cregex_iterator i(image, image + strlen(image), entry), end; i != end; ++i) names[(*i)[1]] = {};
  *m = new Module{file(names)};
  return ok;
}
API CUresult cuModuleUnload(Module* m) { BOUND; delete m; return ok; }
API CUresult cuModuleGetFunction(Function** f, Module* m, const char* name) {
  BOUND;
  if (!m->kernels || !m->kernels->count(name)) return not_found;
  *f = new Function{m->kernels->at(name), 48 << 10};
  return ok;
}
API CUresult cuFuncSetAttribute(Function* f, int attribute, int v) {
  BOUND;
  if (attribute != 8 || v < 0 || v > 166912) return invalid_value;
  f->shared = v;
  return ok;
}
API CUresult cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                            void* s, void** params, void** extra) {
  BOUND;
  if (!gx || gx > 0x7fffffff || !gy || gy > 65535 || !gz || gz > 65535 || !bx || !by || !bz || bz > 64 || bx * by * bz > 1024) return invalid_value;
  if (shared > f->shared || !params || extra) return invalid_value;
  Kernel k = f->kernel;
  std::vector<std::vector<char>> values(k.count);  // copied now, as the driver does
  for (int i = 0; i < k.count; i++) values[i].assign((char*)params[i], (char*)params[i] + k.sizes[i]);
  Shape shape = {{gx, gy, gz}, {bx, by, bz}, shared};
  stream(s)->put([=]() mutable {
    std::vector<void*> args;
    for (auto& v : values) args.push_back(v.data());
    return run(k, shape, args.data()) ? (int)ok : (int)launch_failed;
  });
  return ok;
}
