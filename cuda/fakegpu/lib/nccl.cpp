// NCCL between processes of one machine, through shared memory that the group's id names. As with the real one, a call puts
// work in its stream, a rank that has died makes the others wait for ever, which shows as an asynchronous error, and only
// an abort makes the work come back.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "fake.h"

using namespace fake;

#define ENTER                                  \
  if (int code = failing(__func__)) return code

enum { system_error = 2, bad_argument = 4, remote_error = 6 };
static const size_t slot = 1 << 20;
static const int most = 16;

struct Id { char name[128]; };
struct Shared {
  std::atomic<uint32_t> joined, arrived, round;
  std::atomic<int> process[most];
  alignas(64) char data[];
};
struct Comm {
  Shared* shared;
  int world, rank;
  std::atomic<bool> aborted{false};
  std::atomic<int> error{0};
  char* slot_of(int r) { return shared->data + r * slot; }
};

// meet waits for all ranks. A rank that is gone becomes an error, unless the option silent says that nobody notices.
static bool meet(Comm* c) {
  Shared* s = c->shared;
  uint32_t round = s->round;
  if (s->arrived.fetch_add(1) + 1 == (uint32_t)c->world) {
    s->arrived = 0;
    s->round.fetch_add(1);
    return true;
  }
  for (unsigned i = 1; s->round == round; i++) {
    if (c->aborted) return false;
    sched_yield();
    if (i % 1024) continue;
    for (int r = 0; r < c->world; r++)
      if (kill(s->process[r], 0) && !option("silent", 0)) c->error = remote_error;
  }
  return true;
}

API int ncclGetVersion(int* v) { ENTER; *v = 22304; return 0; }
API int ncclGetUniqueId(Id* id) {
  ENTER;
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  memset(id, 0, sizeof *id);
  snprintf(id->name, sizeof id->name, "/fakenccl-%d-%ld-%ld", getpid(), (long)t.tv_sec, t.tv_nsec);
  memset(id->name + 100, 0x5a, 28);  // the id is 128 bytes, all of which have to arrive
  return 0;
}
API int ncclCommInitRank(Comm** out, int world, Id id, int rank) {
  ENTER;
  for (int i = 100; i < 128; i++)
    if (id.name[i] != 0x5a) return bad_argument;
  if (rank < 0 || rank >= world || world > most || current() < 0) return bad_argument;
  size_t size = sizeof(Shared) + slot * world;
  int f = shm_open(id.name, O_RDWR | O_CREAT, 0600);
  if (f < 0 || ftruncate(f, size)) return system_error;
  auto* s = (Shared*)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
  close(f);
  if (s == MAP_FAILED) return system_error;
  s->process[rank] = getpid();
  s->joined++;
  while (s->joined < (uint32_t)world) sched_yield();
  *out = new Comm{s, world, rank};
  if (!meet(*out)) return system_error;
  if (rank == 0) shm_unlink(id.name);
  return 0;
}
API int ncclCommDestroy(Comm* c) { ENTER; munmap(c->shared, sizeof(Shared) + slot * c->world); delete c; return 0; }
API int ncclCommAbort(Comm* c) { ENTER; c->aborted = true; return 0; }  // c stays, its work may still look at it
API int ncclCommGetAsyncError(Comm* c, int* e) { ENTER; *e = c->error; return 0; }

static size_t bytes(int type) { return type == 7 ? 4 : type == 9 ? 2 : 0; }
static int cuda_type(int type) { return type == 9 ? 14 : 0; }

// pieces calls f for each piece of n bytes that fits in a slot.
template <class F> static int pieces(size_t n, F f) {
  for (size_t at = 0; at < n; at += slot)
    if (!f(at, std::min(slot, n - at))) return ok;  // aborted: the stream goes on
  return ok;
}

// sum adds up piece n bytes of all slots, ranks ascending.
static void sum(Comm* c, char* to, size_t n, int type) {
  int t = cuda_type(type);
  for (size_t i = 0; i < n / bytes(type); i++) {
    float v = 0;
    for (int r = 0; r < c->world; r++) v += get(c->slot_of(r), i, t);
    set(to, i, t, v);
  }
}

static int issue(Comm* c, void* s, const void* in, size_t in_bytes, void* out, size_t out_bytes, std::function<int()> f) {
  if (!c || c->aborted || !in_bytes) return bad_argument;
  stream(s)->put([=] {
    if (!inside((uint64_t)in, in_bytes) || !inside((uint64_t)out, out_bytes)) return (int)illegal_address;
    return f();
  });
  return 0;
}

API int ncclAllReduce(const char* in, char* out, size_t n, int type, int op, Comm* c, void* s) {
  ENTER;
  if (op) return bad_argument;
  size_t all = n * bytes(type);
  return issue(c, s, in, all, out, all, [=] {
    return pieces(all, [=](size_t at, size_t b) {
      memcpy(c->slot_of(c->rank), in + at, b);
      if (!meet(c)) return false;
      sum(c, out + at, b, type);
      return meet(c);
    });
  });
}
API int ncclBroadcast(const char* in, char* out, size_t n, int type, int root, Comm* c, void* s) {
  ENTER;
  if (c && (root < 0 || root >= c->world)) return bad_argument;
  size_t all = n * bytes(type);
  return issue(c, s, in, all, out, all, [=] {
    return pieces(all, [=](size_t at, size_t b) {
      if (c->rank == root) memcpy(c->slot_of(root), in + at, b);
      if (!meet(c)) return false;
      memcpy(out + at, c->slot_of(root), b);
      return meet(c);
    });
  });
}
API int ncclAllGather(const char* in, char* out, size_t n, int type, Comm* c, void* s) {
  ENTER;
  size_t all = n * bytes(type);
  return issue(c, s, in, all, out, all * (c ? c->world : 0), [=] {
    return pieces(all, [=](size_t at, size_t b) {
      memcpy(c->slot_of(c->rank), in + at, b);
      if (!meet(c)) return false;
      for (int r = 0; r < c->world; r++) memcpy(out + r * all + at, c->slot_of(r), b);
      return meet(c);
    });
  });
}
API int ncclReduceScatter(const char* in, char* out, size_t n, int type, int op, Comm* c, void* s) {
  ENTER;
  if (op) return bad_argument;
  size_t all = n * bytes(type);
  return issue(c, s, in, all * (c ? c->world : 0), out, all, [=] {
    for (int to = 0; to < c->world; to++)
      pieces(all, [=](size_t at, size_t b) {
        memcpy(c->slot_of(c->rank), in + to * all + at, b);
        if (!meet(c)) return false;
        if (to == c->rank) sum(c, out + at, b, type);
        return meet(c);
      });
    return (int)ok;
  });
}
