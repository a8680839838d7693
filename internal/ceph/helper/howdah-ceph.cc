// howdah-ceph speaks to one Ceph cluster as one user, for a process that must not link Ceph's libraries: requests come as JSON objects,
// one a line, on the standard input, and each is answered by one line on the standard output, in order. It decides nothing.
// internal/ceph has the other side; README.md has the form.
#include <cephfs/libcephfs.h>
#include <dirent.h>
#include <fcntl.h>
#include <rados/librados.h>
#include <rados/librados.hpp>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "failure.h"

using json = nlohmann::json;

namespace {

librados::bufferlist bufferOf(const std::string &bytes) {
  librados::bufferlist buffer;
  buffer.append(bytes.data(), bytes.size());
  return buffer;
}

class Cluster {
 public:
  Cluster(const std::string &user, const std::string &config, const std::string &keyring, const std::string &timeout) {
    check(rados_create2(&handle_, "ceph", ("client." + user).c_str(), 0), "making a client");
    check(rados_conf_read_file(handle_, config.c_str()), "reading " + config);
    // Whatever does not answer must not be waited for: the other side tries again, and says what it waits for.
    for (const char *option : {"rados_mon_op_timeout", "rados_osd_op_timeout", "client_mount_timeout"}) set(option, timeout);
    if (!keyring.empty()) set("keyring", keyring);
    // Directories are given to their owners as root, though this process is not root.
    for (const char *option : {"client_mount_uid", "client_mount_gid"}) set(option, "0");
    set("admin_socket", "");
    set("log_file", "");
    set("log_to_stderr", "false");
    check(rados_connect(handle_), "connecting to Ceph as client." + user);
    librados::Rados::from_rados_t(handle_, rados_);
  }

  json answer(const json &request) {
    const std::string op = request.at("op");
    if (op == "fsid") return fsid();
    if (op == "addresses") return rados_.get_addrs();
    if (op == "mon" || op == "mgr") return command(op, request.at("command"));
    if (op.rfind("fs.", 0) == 0) return file(op.substr(3), request);
    librados::IoCtx pool = open(request);
    if (op == "objects") return objects(pool);
    const std::string object = request.at("object");
    if (op == "watchers") return watchers(pool, object);
    if (op == "read") return read(pool, object);
    if (op == "write") return write(pool, object, request);
    if (op == "remove") return check(pool.remove(object), "removing " + object), json();
    throw Failure{EINVAL, "no such operation: " + op};
  }

 private:
  void set(const char *option, const std::string &value) { check(rados_conf_set(handle_, option, value.c_str()), option); }

  json fsid() {
    std::string id;
    check(rados_.cluster_fsid(&id), "asking for the fsid");
    return id;
  }

  json command(const std::string &target, const json &command) {
    librados::bufferlist in, out;
    std::string words;
    const std::string text = command.dump();
    const int code = errnoOf(target == "mon" ? rados_.mon_command(text, std::move(in), &out, &words) : rados_.mgr_command(text, std::move(in), &out, &words));
    if (code != 0) throw Failure{code, words.empty() ? strerror(code) : words};
    return json{{"out", out.to_str()}, {"words", words}};
  }

  librados::IoCtx open(const json &request) {
    librados::IoCtx pool;
    const std::string name = request.at("pool");
    check(rados_.ioctx_create(name.c_str(), pool), "opening pool " + name);
    pool.set_namespace(request.at("namespace").get<std::string>());
    return pool;
  }

  json objects(librados::IoCtx &pool) {
    json names = json::array();
    for (auto object = pool.nobjects_begin(); object != pool.nobjects_end(); ++object) names.push_back(object->get_oid());
    return names;
  }

  json watchers(librados::IoCtx &pool, const std::string &object) {
    std::list<obj_watch_t> found;
    check(pool.list_watchers(object, &found), "listing the watchers of " + object);
    json list = json::array();
    for (const auto &watch : found) list.push_back({{"address", watch.addr}, {"cookie", watch.cookie}, {"client", watch.watcher_id}});
    return list;
  }

  // read gives an object's bytes and its keys, as they are at one time.
  json read(librados::IoCtx &pool, const std::string &object) {
    librados::ObjectReadOperation operation;
    librados::bufferlist data;
    std::map<std::string, librados::bufferlist> values;
    bool more = false;
    int keysCode = 0, dataCode = 0;
    operation.read(0, 16 << 20, &data, &dataCode);
    operation.omap_get_vals2("", 1 << 16, &values, &more, &keysCode);
    librados::bufferlist unused;
    check(pool.operate(object, &operation, &unused), "reading " + object);
    if (more) throw Failure{E2BIG, object + " has too many keys"};
    json keys = json::object();
    for (auto &value : values) keys[value.first] = toHex(value.second.to_str());
    return {{"data", toHex(data.to_str())}, {"keys", keys}, {"version", pool.get_last_version()}};
  }

  // write replaces an object's bytes and sets and removes keys, all at once or not at all. "version" makes it fail
  // if the object is another than was read; "create" if there is one.
  json write(librados::IoCtx &pool, const std::string &object, const json &request) {
    librados::ObjectWriteOperation operation;
    if (request.value("create", false)) operation.create(true);
    if (request.contains("version")) operation.assert_version(request["version"].get<uint64_t>());
    if (request.contains("data")) operation.write_full(bufferOf(fromHex(request["data"])));
    if (request.contains("set")) {
      std::map<std::string, librados::bufferlist> values;
      for (auto &pair : request["set"].items()) values[pair.key()] = bufferOf(fromHex(pair.value()));
      operation.omap_set(values);
    }
    if (request.contains("unset")) operation.omap_rm_keys(request["unset"].get<std::set<std::string>>());
    check(pool.operate(object, &operation), "writing " + object);
    return {{"version", pool.get_last_version()}};
  }

  // Mount is a directory of a file system, for one request: a client that is killed with a mount keeps others from what it has
  // seen, for minutes.
  class Mount {
   public:
    Mount(rados_t cluster, const std::string &fileSystem, const std::string &root) {
      check(ceph_create_from_rados(&info_, cluster), "making a mount");
      int code = ceph_select_filesystem(info_, fileSystem.c_str());
      if (code >= 0) code = ceph_mount(info_, root.c_str());
      if (code < 0) {
        ceph_release(info_);
        check(code, "mounting " + root + " of file system " + fileSystem);
      }
    }
    ~Mount() {
      ceph_unmount(info_);
      ceph_release(info_);
    }
    Mount(const Mount &) = delete;
    Mount &operator=(const Mount &) = delete;
    operator ceph_mount_info *() const { return info_; }

   private:
    ceph_mount_info *info_ = nullptr;
  };

  // isText is false of a name that is not UTF-8: an answer would have another one.
  static bool isText(const std::string &name) {
    try {
      return json(name).dump() != "";
    } catch (const json::type_error &) {
      return false;
    }
  }

  // tree adds the directories below one, down to a depth, but those whose names begin so, or are not UTF-8. What is below is listed after its list was
  // closed: one list is open at a time.
  static void tree(ceph_mount_info *fs, const std::string &root, const std::string &relative, int depth, const std::string &skip, json &found) {
    const std::string path = relative.empty() ? root + "/" : root + "/" + relative;
    ceph_dir_result *directory = nullptr;
    int code = ceph_opendir(fs, path.c_str(), &directory);
    // It was removed since it was seen.
    if (code == -ENOENT && !relative.empty()) return;
    check(code, "listing " + path);
    std::vector<std::string> below;
    struct dirent entry;
    struct ceph_statx stat;
    while ((code = ceph_readdirplus_r(fs, directory, &entry, &stat, CEPH_STATX_MODE | CEPH_STATX_UID | CEPH_STATX_GID, 0, nullptr)) > 0) {
      const std::string name = entry.d_name;
      if (name == "." || name == ".." || !S_ISDIR(stat.stx_mode) || name.rfind(skip, 0) == 0 || !isText(name)) continue;
      below.push_back(relative.empty() ? name : relative + "/" + name);
      found.push_back({{"path", below.back()}, {"uid", stat.stx_uid}, {"gid", stat.stx_gid}, {"mode", stat.stx_mode & 07777}});
    }
    ceph_closedir(fs, directory);
    check(code, "listing " + path);
    if (depth <= 1) return;
    for (const std::string &next : below) tree(fs, root, next, depth - 1, skip, found);
  }

  // sizes are the bytes of what is in directories, by path relative to the root: of those so deep below it, with depth 0 of the root itself.
  // Ceph counts them (ceph.dir.rbytes), for its client to ask for.
  static json sizes(ceph_mount_info *fs, const std::string &root, int depth, const std::string &skip) {
    json directories = json::array({{{"path", ""}}}), sizes = json::object();
    if (depth > 0) tree(fs, root, "", depth, skip, directories);
    for (const auto &directory : directories) {
      const std::string relative = directory["path"];
      if ((relative.empty() ? 0 : std::count(relative.begin(), relative.end(), '/') + 1) != depth) continue;
      const std::string path = root + "/" + relative;
      char text[32] = {};
      const int length = ceph_lgetxattr(fs, path.c_str(), "ceph.dir.rbytes", text, sizeof(text) - 1);
      if (length == -ENOENT && depth > 0) continue;  // It was removed since it was seen.
      check(length, "asking for the size of " + path);
      sizes[relative] = std::stoull(text);
    }
    return sizes;
  }

  json file(const std::string &op, const json &request) {
    const Mount fs(handle_, request.at("fileSystem"), request.at("root"));
    const std::string path = request.value("path", "/");
    if (op == "statfs") {
      struct statvfs stat;
      check(ceph_statfs(fs, path.c_str(), &stat), "measuring " + path);
      return {{"total", stat.f_blocks * stat.f_frsize}, {"available", stat.f_bavail * stat.f_frsize}};
    }
    if (op == "stat") {
      struct ceph_statx stat;
      check(ceph_statx(fs, path.c_str(), &stat, CEPH_STATX_ALL_STATS, AT_SYMLINK_NOFOLLOW), "looking at " + path);
      return {{"uid", stat.stx_uid}, {"gid", stat.stx_gid}, {"mode", stat.stx_mode}, {"inode", stat.stx_ino}};
    }
    if (op == "attributes") {
      // The owner first: chown clears the set-id bits that chmod sets.
      check(ceph_lchown(fs, path.c_str(), request.at("uid").get<int>(), request.at("gid").get<int>()), "giving " + path + " its owner");
      check(ceph_chmod(fs, path.c_str(), request.at("mode").get<mode_t>()), "giving " + path + " its mode");
      return {};
    }
    if (op == "list") {
      ceph_dir_result *directory = nullptr;
      check(ceph_opendir(fs, path.c_str(), &directory), "listing " + path);
      json names = json::array();
      struct dirent entry;
      int code;
      while ((code = ceph_readdir_r(fs, directory, &entry)) > 0) {
        const std::string name = entry.d_name;
        if (name != "." && name != "..") names.push_back(name);
      }
      ceph_closedir(fs, directory);
      check(code, "listing " + path);
      return names;
    }
    if (op == "tree") {
      json found = json::array();
      tree(fs, path == "/" ? "" : path, "", request.at("depth").get<int>(), request.at("skip"), found);
      return found;
    }
    if (op == "sizes") return sizes(fs, path == "/" ? "" : path, request.at("depth").get<int>(), request.at("skip"));
    throw Failure{EINVAL, "no such operation: fs." + op};
  }

  rados_t handle_ = nullptr;
  librados::Rados rados_;
};

void reply(const json &line) { std::cout << line.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl; }

void fail(const Failure &failure) { reply({{"code", failure.code}, {"words", failure.words}}); }

}  // namespace

int main(int count, char **arguments) {
  std::map<std::string, std::string> options = {{"--user", ""}, {"--config", "/etc/ceph/ceph.conf"}, {"--keyring", ""}, {"--timeout", "10"}};
  for (int i = 1; i < count; i += 2) {
    auto option = options.find(arguments[i]);
    if (option == options.end() || i + 1 == count) {
      std::cerr << "howdah-ceph --user USER [--config FILE] [--keyring FILE] [--timeout SECONDS]; bad: " << arguments[i] << "\n";
      return 2;
    }
    option->second = arguments[i + 1];
  }
  try {
    Cluster cluster(options["--user"], options["--config"], options["--keyring"], options["--timeout"]);
    reply({{"code", 0}});
    for (std::string line; std::getline(std::cin, line);) {
      try {
        reply({{"code", 0}, {"result", cluster.answer(json::parse(line))}});
      } catch (const json::exception &wrong) {
        fail({EINVAL, wrong.what()});
      } catch (...) {
        fail(currentFailure());
      }
    }
    // Nothing is mounted between requests, and an orderly end could wait for a cluster that does not answer.
    std::cout.flush();
    _exit(0);
  } catch (...) {
    fail(currentFailure());
  }
  std::cout.flush();
  _exit(1);
}
