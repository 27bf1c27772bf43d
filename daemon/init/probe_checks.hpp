// SPDX-License-Identifier: MIT
// The checks of mechad-probe. Each takes what follows its name on the command line and returns 0,
// having added its findings to the report, or an errno.
#pragma once

#include "daemon/init/probe_report.hpp"

namespace mechad {

extern Report report;
extern const char* token;  // written and sent where a check leaves a mark

// --- files ---
int check_read(const char* path);   // the first bytes
int check_write(const char* path);  // creates the file or appends to it: TOKEN
int check_stat(const char* path);   // the size, without following a link
int check_mounts(const char*);      // DEVICE:ROOT of each mount, as mountinfo has them

// --- sockets: send TOKEN ---
int check_tcp(const char* target);   // ADDRESS:PORT
int check_udp(const char* target);   // ADDRESS:PORT
int check_unix(const char* path);    // or @NAME, abstract
int check_socket(const char* spec);  // FAMILY,TYPE,PROTOCOL: is it made at all?

// --- processes ---
// PID=REST for each argument (environment string) of any process in /proc that holds WORD, REST
// being what follows it there.
int check_cmdline(const char* word);
int check_environ(const char* word);
int check_signal(const char* pid);   // SIGURG, which does nothing to who does not expect it
int check_orphan(const char* path);  // leaves a process that holds a flock on the file for ever
int check_fds(const char*);          // NUMBER=TARGET of each descriptor
int check_env(const char*);
int check_ns(const char*);  // NAME=INODE of each namespace

// --- System V and POSIX IPC ---
int check_shm(const char* id);      // the first bytes of that shared memory segment
int check_queue(const char* name);  // the oldest message of that POSIX message queue

// Stands for another program of the user: says "r" on stdout when it is ready, "c" for each SIGURG
// of its parent and "x" for one of anybody else, and ends with its stdin.
int be_witness();

}  // namespace mechad
