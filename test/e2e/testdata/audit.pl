# Reads a ledger of ledger.pl and prints what is not as it says.
use strict;
chdir "/tree/kills" or die "chdir: $!";
while (my $line = <STDIN>) {
	chomp $line;
	my ($kind, $path, $text) = split / /, $line, 3;
	if ($kind eq "F") {
		open my $f, "<", $path or do { print "$path: $!\n"; next };
		my $got = <$f>;
		print "$path has \"$got\" instead of \"$text\"\n" if $got ne $text;
	} elsif ($kind eq "G") {
		print "$path is there\n" if -e $path;
	} else {
		print "$path: $!\n" unless -d $path;
	}
}
