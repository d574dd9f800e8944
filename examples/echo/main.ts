import * as Stdio from "@skein/server/Stdio"
import { Echo } from "./server.ts"

Stdio.runMain(Echo)
