/** Serves a client over stdin and stdout. */
import * as Stdio from "@skein/server/Stdio"
import { Server } from "./server.ts"

Stdio.runMain(Server)
