// A driver, a cuBLAS and an NCCL on the processor, for tests of what calls them: the functions that are bound have their
// arguments checked, streams are threads, and several processes talk through shared memory. What is tested is the calling;
// nothing here is fast.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace fake {
// option is a setting of a test (fake_option) or of the environment (FAKEGPU_NAME).
long option(const char* name, long otherwise);

// failing is the error that the test wants of a call next (fake_fail), 0 for none.
int failing(const char* call);

// Codes of the driver.
enum { ok = 0, invalid_value = 1, out_of_memory = 2, no_device = 100, invalid_device = 101, invalid_context = 201, invalid_ptx = 218,
       unsupported_ptx = 222, not_found = 500, not_ready = 600, illegal_address = 700, launch_failed = 719 };

// sticky is the error that has broken the device; it stays.
int sticky();
void broken(int code);

// device is the number of the device that is current on this thread, or -1.
int current();

// inside reports whether n bytes from p on are in one allocation.
bool inside(uint64_t p, size_t n);

// Stream runs what is put in it, in order, on a thread of its own. With the option lazy it runs only what somebody waits
// for or asks about, so that a missing wait shows every time.
class Stream {
 public:
  Stream();
  ~Stream();  // waits
  void put(std::function<int()> work);
  uint64_t last();            // the number of what was put last
  void release(uint64_t n);   // lets work up to number n run
  void wait(uint64_t n);      // releases and waits
  bool passed(uint64_t n);    // releases, and reports whether it has run

 private:
  void loop();
  std::mutex lock;
  std::condition_variable changed;
  std::deque<std::function<int()>> work;
  uint64_t given = 0, allowed = 0, done = 0;
  bool ended = false;
};

// stream is a handle's stream; 0 is the default one.
Stream* stream(void* handle);

// settle waits for all streams.
void settle();

// Kernel is a function of a file of kernels.
struct Kernel {
  void (*call)(void**);
  const unsigned* sizes;  // of its arguments
  int count;
};
typedef std::map<std::string, Kernel> Kernels;

// file returns the kernels of the file that has just these names, or null.
const Kernels* file(const Kernels& names);

struct Shape { unsigned grid[3], block[3], shared; };

// run runs a kernel, a thread for each processor; false: some threads of a block wait for what never comes.
bool run(const Kernel& k, const Shape& s, void** args);

float get(const void* p, size_t i, int type);  // types of CUDA: 0 float, 14 bfloat16
void set(void* p, size_t i, int type, float v);
}  // namespace fake
