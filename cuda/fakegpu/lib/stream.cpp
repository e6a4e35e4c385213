// Streams, and the settings of tests.
#include "fake.h"

#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "emu.h"

namespace fake {
static std::mutex settings;
static std::map<std::string, long>& options() {
  static auto* m = new std::map<std::string, long>;
  return *m;
}
static std::map<std::string, int>& failures() {
  static auto* m = new std::map<std::string, int>;
  return *m;
}

long option(const char* name, long otherwise) {
  std::lock_guard<std::mutex> held(settings);
  auto it = options().find(name);
  if (it != options().end()) return it->second;
  const char* v = getenv((std::string("FAKEGPU_") + name).c_str());
  return v ? atol(v) : otherwise;
}

int failing(const char* call) {
  std::lock_guard<std::mutex> held(settings);
  auto it = failures().find(call);
  if (it == failures().end()) return 0;
  int code = it->second;
  failures().erase(it);
  return code;
}

static std::mutex registry;
static std::set<Stream*>& streams() {
  static auto* s = new std::set<Stream*>;
  return *s;
}

Stream::Stream() {
  std::lock_guard<std::mutex> held(registry);
  streams().insert(this);
  std::thread([this] { loop(); }).detach();
}

Stream::~Stream() {
  wait(last());
  {
    std::lock_guard<std::mutex> held(registry);
    streams().erase(this);
  }
  std::unique_lock<std::mutex> held(lock);
  ended = true;
  changed.notify_all();
  changed.wait(held, [&] { return !ended; });
}

void Stream::loop() {
  std::unique_lock<std::mutex> held(lock);
  for (;;) {
    changed.wait(held, [&] { return ended || done < allowed; });
    if (ended) {
      ended = false;
      changed.notify_all();
      return;
    }
    auto f = std::move(work.front());
    work.pop_front();
    held.unlock();
    int code = sticky() ? 0 : f();
    if (code) broken(code);
    held.lock();
    done++;
    changed.notify_all();
  }
}

void Stream::put(std::function<int()> f) {
  std::lock_guard<std::mutex> held(lock);
  work.push_back(std::move(f));
  given++;
  if (!option("lazy", 0)) allowed = given;
  changed.notify_all();
}

uint64_t Stream::last() {
  std::lock_guard<std::mutex> held(lock);
  return given;
}

void Stream::release(uint64_t n) {
  std::lock_guard<std::mutex> held(lock);
  if (allowed < n) allowed = n;
  changed.notify_all();
}

void Stream::wait(uint64_t n) {
  release(n);
  std::unique_lock<std::mutex> held(lock);
  changed.wait(held, [&] { return done >= n; });
}

bool Stream::passed(uint64_t n) {
  release(n);
  std::lock_guard<std::mutex> held(lock);
  return done >= n;
}

void settle() {
  std::lock_guard<std::mutex> held(registry);
  for (Stream* s : streams()) s->wait(s->last());
}

Stream* stream(void* handle) {
  static auto* standard = new Stream;
  return handle ? (Stream*)handle : standard;
}

float get(const void* p, size_t i, int type) {
  return type == 14 ? __uint_as_float((unsigned)((const uint16_t*)p)[i] << 16) : ((const float*)p)[i];
}
void set(void* p, size_t i, int type, float v) {
  if (type == 14) ((uint16_t*)p)[i] = narrow_bits(v);
  else ((float*)p)[i] = v;
}
}  // namespace fake

API void fake_option(const char* name, long value) {
  std::lock_guard<std::mutex> held(fake::settings);
  fake::options()[name] = value;
}
API void fake_fail(const char* call, int code) {
  std::lock_guard<std::mutex> held(fake::settings);
  fake::failures()[call] = code;
}
// fake_heal forgets what has broken the device, for the next test.
API void fake_heal() { fake::broken(0); }
