// The scenario of one-sided programs in several processes.
#ifndef MSCCLSH_TEST_ONE_PROCESS_H
#define MSCCLSH_TEST_ONE_PROCESS_H

#include "process.h"

void test_onesided(const Setting &s);
void test_onecalls(const Setting &s);

#endif
