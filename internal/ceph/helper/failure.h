// What howdah-ceph answers when a request fails, and the conversions that need no Ceph. failure_test.cc has the tests.
#pragma once
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace {

// Failure is an answer that is no success: an errno of Ceph's, and its words.
struct Failure {
  int code;
  std::string words;
};

void check(int code, const std::string &what) {
  if (code < 0) throw Failure{-code, what + ": " + strerror(-code)};
}

// errnoOf is the errno of a command's result, or 0 of one that succeeded. librados ends its wait for a manager with ETIMEDOUT, which is positive, and
// with an empty answer. Then nothing more may be asked: the late answer is written into what was the stack of the call, and ends the next wait there.
int errnoOf(int result) {
  if (result < 0) return -result;
  return result == ETIMEDOUT ? ETIMEDOUT : 0;
}

// Names are UTF-8, what is in objects may be anything: bytes travel in hexadecimal digits.
std::string toHex(const std::string &bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (unsigned char c : bytes) {
    text += digits[c >> 4];
    text += digits[c & 15];
  }
  return text;
}

std::string fromHex(const std::string &text) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw Failure{EINVAL, "not hexadecimal"};
  };
  if (text.size() % 2 != 0) throw Failure{EINVAL, "not hexadecimal"};
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) bytes += static_cast<char>(digit(text[i]) << 4 | digit(text[i + 1]));
  return bytes;
}

// currentFailure is the failure to answer for the exception that is being handled: an uncaught exception would abort the program,
// and its user would see no reason. Ceph's C++ library throws std::system_error where its functions have no result to return.
inline Failure currentFailure() {
  try {
    throw;
  } catch (const Failure &failure) {
    return failure;
  } catch (const std::system_error &error) {
    const int code = std::abs(error.code().value());
    return {code == 0 ? EIO : code, error.what()};
  } catch (const std::bad_alloc &) {
    return {ENOMEM, "out of memory"};
  } catch (const std::exception &error) {
    return {EIO, std::string("unexpected error: ") + error.what()};
  } catch (...) {
    return {EIO, "unexpected error"};
  }
}

}  // namespace
