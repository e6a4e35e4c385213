// Fibers: blocks of CUDA threads on one thread of the system.
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "emu.h"
#include "fake.h"

namespace emu {
thread_local Thread* thread;
thread_local Block block;

enum { ready, at_block, at_warp, ended };
static const size_t stack_bytes = 64 << 10;

// Fiber is a thread's saved state. On amd64 it is the stack pointer alone: ucontext asks the system for each switch.
#ifdef __x86_64__
struct Fiber { void* sp; };
extern "C" void fake_switch(void** save, void* load);
asm(".text\n.globl fake_switch\n.hidden fake_switch\n.type fake_switch,@function\nfake_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
static void change(Fiber* from, Fiber* to) { fake_switch(&from->sp, to->sp); }
static void start(Fiber* f, char* stack, void (*body)()) {
  void** sp = (void**)(stack + stack_bytes);
  *--sp = nullptr;  // body never returns
  *--sp = (void*)body;
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  f->sp = sp;
}
#else
typedef ucontext_t Fiber;
static void change(Fiber* from, Fiber* to) { swapcontext(from, to); }
static void start(Fiber* f, char* stack, void (*body)()) {
  getcontext(f);
  f->uc_stack.ss_sp = stack;
  f->uc_stack.ss_size = stack_bytes;
  makecontext(f, body, 0);
}
#endif

static thread_local Fiber scheduler;
static thread_local Call body;
static thread_local void** arguments;

static void yield(int state) {
  thread->state = state;
  change((Fiber*)thread->context, &scheduler);
}
void block_barrier() { yield(at_block); }
void warp_barrier(unsigned mask) {
  if (!(mask >> thread->lane & 1)) {
    fprintf(stderr, "fakegpu: lane %u is not in the mask of its own exchange\n", thread->lane);
    abort();
  }
  thread->warp->arrived |= 1u << thread->lane;
  yield(at_warp);
}
static void run_thread() {
  body(arguments);
  thread->warp->alive &= ~(1u << thread->lane);
  yield(ended);
}

// run_warp runs a warp until all of its lanes have ended or wait for the block; false if it could do nothing.
static bool run_warp(Warp& w, Thread* first, unsigned lanes) {
  bool moved = false;
  for (;;) {
    bool again = false;
    for (unsigned i = 0; i < lanes; i++)
      if (first[i].state == ready) {
        thread = &first[i];
        change(&scheduler, (Fiber*)thread->context);
        again = true;
      }
    if (w.arrived && (w.arrived & w.alive) == w.alive) {
      w.arrived = 0;
      for (unsigned i = 0; i < lanes; i++)
        if (first[i].state == at_warp) first[i].state = ready, again = true;
    }
    if (!again) return moved;
    moved = true;
  }
}

// Stacks are the stacks of a system thread's fibers.
struct Stacks {
  char* at = nullptr;
  size_t bytes = 0;
  ~Stacks() { if (at) munmap(at, bytes); }
  char* of(unsigned n) {
    if (bytes < n * stack_bytes) {
      if (at) munmap(at, bytes);
      bytes = n * stack_bytes;
      at = (char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    return at;
  }
};
static thread_local Stacks stacks;

// Room is a system thread's dynamic shared memory, at an address of 32 bits.
struct Room {
  static const size_t bytes = 256 << 10;
#ifdef MAP_32BIT
  char* at = (char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
#else
  char* at = (char*)mmap((void*)0x20000000, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#endif
  ~Room() { munmap(at, bytes); }
};
static thread_local Room room;

static bool run_block(Call call, void** args, const Block& b, unsigned shared) {
  unsigned n = b.size.x * b.size.y * b.size.z, warps = (n + 31) / 32;
  std::vector<Thread> threads(n);
  std::vector<Fiber> fibers(n);
  std::vector<Warp> exchange(warps, Warp());
  body = call, arguments = args, block = b;
  block.shared = room.at;
  if ((uintptr_t)room.at >> 32) {
    fprintf(stderr, "fakegpu: no room for shared memory below 4 GiB\n");
    abort();
  }
  memset(room.at, 0xff, shared);  // NaN
  char* stack = stacks.of(n);
  for (unsigned i = 0; i < n; i++) {
    Index3 at = {i % b.size.x, i / b.size.x % b.size.y, i / (b.size.x * b.size.y)};
    threads[i] = {at, i & 31, 0, &exchange[i / 32], ready, &fibers[i]};
    exchange[i / 32].alive |= 1u << (i & 31);
    start(&fibers[i], stack + i * stack_bytes, run_thread);
  }
  for (;;) {
    bool moved = false;
    for (unsigned w = 0; w < warps; w++) moved |= run_warp(exchange[w], &threads[w * 32], std::min(32u, n - w * 32));
    unsigned done = 0, waiting = 0;
    for (auto& t : threads) done += t.state == ended, waiting += t.state == at_block;
    if (done == n) return true;
    if (done + waiting == n) {
      for (auto& t : threads)
        if (t.state == at_block) t.state = ready;
    } else if (!moved) {
      fprintf(stderr, "fakegpu: block %u,%u,%u: some threads wait for what others never reach\n", b.index.x, b.index.y, b.index.z);
      return false;
    }
  }
}

static std::map<std::string, fake::Kernels>& files() {
  static auto* m = new std::map<std::string, fake::Kernels>;
  return *m;
}
void add(const char* file, const char* name, Call call, const unsigned* sizes, int count) { files()[file][name] = {call, sizes, count}; }
}  // namespace emu

namespace fake {
const Kernels* file(const Kernels& names) {
  for (auto& f : emu::files()) {
    bool same = f.second.size() == names.size();
    for (auto& k : f.second) same = same && names.count(k.first);
    if (same) return &f.second;
  }
  return nullptr;
}

bool run(const Kernel& k, const Shape& s, void** args) {
  uint64_t total = (uint64_t)s.grid[0] * s.grid[1] * s.grid[2];
  std::atomic<uint64_t> next{0};
  std::atomic<bool> fine{true};
  auto work = [&] {
    for (uint64_t i; fine && (i = next++) < total;) {
      emu::Block b = {{(unsigned)(i % s.grid[0]), (unsigned)(i / s.grid[0] % s.grid[1]), (unsigned)(i / s.grid[0] / s.grid[1])},
                      {s.block[0], s.block[1], s.block[2]}, {s.grid[0], s.grid[1], s.grid[2]}, nullptr};
      if (!emu::run_block(k.call, args, b, s.shared)) fine = false;
    }
  };
  unsigned threads = std::min<uint64_t>(total, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; i++) others.emplace_back(work);
  work();
  for (auto& t : others) t.join();
  return fine;
}
}  // namespace fake
