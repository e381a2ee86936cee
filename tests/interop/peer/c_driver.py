"""Runs the real C media driver in this process until SIGTERM: `c_driver.py DIRECTORY`.

The driver reads all other settings from variables `AERON_*`, like `aeronmd`. With the threading mode INVOKER, the main
thread runs conductor, sender and receiver.
"""

import os
import signal
import sys
import time

from c_api import P, check, load


def main(directory):
    library = load()
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    context, driver = P(), P()
    check(library, library.aeron_driver_context_init(context))
    check(library, library.aeron_driver_context_set_dir(context, directory.encode()))
    check(library, library.aeron_driver_init(driver, context))
    invoker = os.environ.get("AERON_THREADING_MODE") == "INVOKER"
    check(library, library.aeron_driver_start(driver, invoker))
    while not stop:
        if invoker:
            library.aeron_driver_main_idle_strategy(driver, library.aeron_driver_main_do_work(driver))
        else:
            time.sleep(0.05)
    check(library, library.aeron_driver_close(driver))
    check(library, library.aeron_driver_context_close(context))


if __name__ == "__main__":
    main(sys.argv[1])
