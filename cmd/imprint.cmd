@echo off
rem Runs `imprint` from a bare checkout on Windows; the same steps as cmd/imprint.
setlocal
rem Python would take its own place from these, whatever environment it lies in.
set "PYTHONEXECUTABLE="
set "__PYVENV_LAUNCHER__="
set "root=%~dp0.."
if defined IMPRINT_HOME (set "home=%IMPRINT_HOME%") else (set "home=%LOCALAPPDATA%\imprint")
for /f "skip=1 delims=" %%h in ('certutil -hashfile "%root%\locks\tool.txt" SHA256') do if not defined digest set "digest=%%h"
set "digest=%digest: =%"
set "tool=%home%\tool\env-%digest%"
if exist "%tool%\Scripts\python.exe" goto run
set "python="
for %%p in ("py -3" python python3) do if not defined python (
    %%~p -I -c "import sys; sys.exit(sys.version_info < (3, 11))" >nul 2>nul && set "python=%%~p"
)
if not defined python (
    echo error: imprint needs Python 3.11 or newer; none is on PATH 1>&2
    echo hint: install Python 3.11 or newer and run this again 1>&2
    exit /b 1
)
%python% -I "%root%\cmd\imprint_launch" --program imprint --home "%home%" --lock "%root%\locks\tool.txt" --into "%tool%" -- %* || exit /b
if not exist "%tool%\Scripts\python.exe" exit /b 0
:run
if not exist "%tool%\pyvenv.cfg" (
    echo error: the tool environment "%tool%" is damaged: its pyvenv.cfg is missing 1>&2
    echo hint: delete "%tool%"; the next start rebuilds it 1>&2
    exit /b 1
)
"%tool%\Scripts\python.exe" -I -S -c "import sys; root, env = sys.argv[1:3]; del sys.argv[1:3]; sys.path[:0] = [root, root + '/cmd']; from imprint_launch.entering import enter; sys.exit(enter(env))" "%root%" "%tool%" %*
exit /b %errorlevel%
