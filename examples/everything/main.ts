import * as Stdio from "@skein/server/Stdio"
import { Everything } from "./server.ts"

Stdio.runMain(Everything)
