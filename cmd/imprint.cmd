@echo off
rem Runs `imprint` from a bare checkout on Windows; the same steps as cmd/imprint.
setlocal
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
"%tool%\Scripts\python.exe" -I -c "import sys; root = sys.argv.pop(1); sys.argv[0] = 'imprint'; sys.path[:0] = [root, root + '/cmd']; from imprint_cli.__main__ import main; sys.exit(main())" "%root%" %*
exit /b %errorlevel%
