# Reads a ledger of load.pl and prints what is not as it says, and how much was looked at at the end.
#   perl audit.pl DIRECTORY RUN <LEDGER
use strict;
my ($directory, $run) = @ARGV; my $seen = 0;
open my $file, "<", "$directory/$run" or die "$directory/$run: $!";
while (my $line = <STDIN>) {
	chomp $line; $seen++;
	my ($kind, $n, $want) = split / /, $line, 3;
	if ($kind eq "R") {
		my $record;
		seek $file, $n * 16384, 0; read $file, $record, 16384;
		my $sum = unpack "%32N*", $record;
		print "record $n of $directory has the checksum $sum instead of $want\n" if $sum != $want || $record ne sprintf("%-16s", "$run $n") x 1024;
	} else {
		open my $f, "<", "$directory/$run-$n" or do { print "$directory/$run-$n: $!\n"; next };
		my $got = <$f>;
		print "$directory/$run-$n has \"$got\" instead of \"$want\"\n" if $got ne $want;
	}
}
print "looked at $seen\n";
