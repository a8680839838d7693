// Built with sanitizers and run by internal/ceph/client/helper_test.go.
#include "failure.h"

#include <iostream>
#include <stdexcept>
#include <utility>

namespace {

int wrong = 0;

template <typename Throw>
void expect(const char *what, int code, const std::string &words, Throw &&thrower) {
  try {
    thrower();
  } catch (...) {
    const Failure failure = currentFailure();
    if (failure.code == code && failure.words.find(words) != std::string::npos) return;
    std::cerr << what << ": code " << failure.code << ", words " << failure.words << "\n";
    wrong = 1;
    return;
  }
  std::cerr << what << ": nothing was thrown\n";
  wrong = 1;
}

}  // namespace

int main() {
  expect("a failure", EPERM, "no", [] { throw Failure{EPERM, "no"}; });
  expect("a result of Ceph", ENOENT, "reading x: ", [] { check(-ENOENT, "reading x"); });
  expect("an error of librados", ENOENT, "", [] { throw std::system_error(ENOENT, std::system_category()); });
  expect("a negative one", ETIMEDOUT, "", [] { throw std::system_error(-ETIMEDOUT, std::system_category()); });
  expect("a size that is no number", EIO, "stoull", [] { (void)std::stoull("none"); });
  expect("no memory", ENOMEM, "", [] { throw std::bad_alloc(); });
  expect("anything else", EIO, "", [] { throw 7; });
  expect("odd digits", EINVAL, "hexadecimal", [] { (void)fromHex("abc"); });
  expect("no digits", EINVAL, "hexadecimal", [] { (void)fromHex("zz"); });
  for (const auto &[result, code] : {std::pair{0, 0}, {1, 0}, {-ENOENT, ENOENT}, {-ETIMEDOUT, ETIMEDOUT}, {ETIMEDOUT, ETIMEDOUT}}) {
    if (errnoOf(result) == code) continue;
    std::cerr << "the errno of " << result << " is " << errnoOf(result) << "\n";
    wrong = 1;
  }
  std::string bytes;
  for (int i = 0; i < 256; i++) bytes += static_cast<char>(i);
  if (fromHex(toHex(bytes)) != bytes) {
    std::cerr << "bytes don't come back from their digits\n";
    wrong = 1;
  }
  return wrong;
}
